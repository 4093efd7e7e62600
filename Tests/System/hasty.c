// Time passes faster. Loaded before the program (LD_PRELOAD).
//
// HASTE: how many seconds pass in one. Clocks go on from what they show at the program's start, and poll(2) waits less.
// LEAP: by how many seconds the wall clock is set forward, 2 s after the program's start.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
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
  static long long begin[2];
  long long now = nanoseconds(clock);
  if (clock != CLOCK_REALTIME && clock != CLOCK_MONOTONIC) return now;
  if (!begin[clock]) begin[clock] = now;
  const char *leap = getenv("LEAP");
  long long ahead = leap && clock == CLOCK_REALTIME && now - begin[clock] > 2000000000LL ? atol(leap) * 1000000000LL : 0;
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

int poll(struct pollfd *files, nfds_t count, int timeout) {
  int (*real)(struct pollfd *, nfds_t, int) = (int (*)(struct pollfd *, nfds_t, int))dlsym(RTLD_NEXT, "poll");
  return real(files, count, timeout > 0 ? (timeout + haste() - 1) / haste() : timeout);
}
