// Time passes faster. Loaded before the program (LD_PRELOAD).
//
// HASTE: how many seconds pass in one. Clocks go on from what they show at the program's start; poll(2) and timers
// (timerfd_create(2)) wait less.
// SHIFT: by how many seconds the wall clock is ahead from the start.
// LEAP: by how many seconds the wall clock is set forward, LEAP_AFTER seconds (else 2) after the program's start.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

static long long nanoseconds(clockid_t clock) {
  struct timespec now;
  syscall(SYS_clock_gettime, clock, &now);
  return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static long haste(void) {
  const char *value = getenv("HASTE");
  return value ? atol(value) : 1;
}

static long long shown(clockid_t clock) {
  static long long begin[CLOCK_BOOTTIME + 1];
  long long now = nanoseconds(clock);
  if (clock != CLOCK_REALTIME && clock != CLOCK_MONOTONIC && clock != CLOCK_BOOTTIME) return now;
  if (!begin[clock]) begin[clock] = now;
  const char *leap = getenv("LEAP");
  const char *after = getenv("LEAP_AFTER");
  long long since = (after ? atol(after) : 2) * 1000000000LL;
  long long ahead = leap && clock == CLOCK_REALTIME && now - begin[clock] > since ? atol(leap) * 1000000000LL : 0;
  const char *shift = getenv("SHIFT");
  if (shift && clock == CLOCK_REALTIME) ahead += atol(shift) * 1000000000LL;
  return begin[clock] + (now - begin[clock]) * haste() + ahead;
}

int clock_gettime(clockid_t clock, struct timespec *time) {
  long long now = shown(clock);
  time->tv_sec = now / 1000000000;
  time->tv_nsec = now % 1000000000;
  return 0;
}

int gettimeofday(struct timeval *time, void *zone) {
  (void)zone;
  long long now = shown(CLOCK_REALTIME);
  time->tv_sec = now / 1000000000;
  time->tv_usec = now % 1000000000 / 1000;
  return 0;
}

time_t time(time_t *time) {
  time_t now = shown(CLOCK_REALTIME) / 1000000000;
  if (time) *time = now;
  return now;
}

static void shorten(struct timespec *time) {
  long long all = time->tv_sec * 1000000000LL + time->tv_nsec;
  all = (all + haste() - 1) / haste();
  time->tv_sec = all / 1000000000;
  time->tv_nsec = all % 1000000000;
}

// Its users give a time from now.
int timerfd_settime(int timer, int flags, const struct itimerspec *setting, struct itimerspec *old) {
  struct itimerspec shorter = *setting;
  if (!(flags & TFD_TIMER_ABSTIME)) {
    shorten(&shorter.it_value);
    shorten(&shorter.it_interval);
  }
  return (int)syscall(SYS_timerfd_settime, timer, flags, &shorter, old);
}

int poll(struct pollfd *files, nfds_t count, int timeout) {
  int (*real)(struct pollfd *, nfds_t, int) = (int (*)(struct pollfd *, nfds_t, int))dlsym(RTLD_NEXT, "poll");
  return real(files, count, timeout > 0 ? (timeout + haste() - 1) / haste() : timeout);
}
