// A program that is suspended (SIGSTOP) at the worst moment: right after it has seen that there is nothing to read.
// STOP_AT: what it does then: wait or check (poll with a time or without one), or recv. STOP_FILE: it is suspended when this file exists, and
// removes it. Loaded before the program (LD_PRELOAD).
#define _GNU_SOURCE
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

static void stop(const char *here) {
  const char *file = getenv("STOP_FILE"), *at = getenv("STOP_AT");
  if (at && file && strcmp(at, here) == 0 && unlink(file) == 0) raise(SIGSTOP);
}

int poll(struct pollfd *entries, nfds_t count, int milliseconds) {
  int ready = (int)syscall(SYS_poll, entries, count, milliseconds);
  // The radio is waited for together with a signal.
  if (ready == 0 && count == 2) stop(milliseconds > 0 ? "wait" : "check");
  return ready;
}

ssize_t recv(int descriptor, void *buffer, size_t size, int flags) {
  ssize_t count = syscall(SYS_recvfrom, descriptor, buffer, size, flags, NULL, NULL);
  if (count < (ssize_t)size) stop("recv");
  return count;
}
