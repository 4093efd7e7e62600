// Somebody else who may write into a folder: what turns out to be a folder of the name "inner" when it is to be removed
// is a link to VICTIM by the next call. Loaded before the program (LD_PRELOAD).
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

int unlinkat(int folder, const char *name, int flags) {
  int result = (int)syscall(SYS_unlinkat, folder, name, flags);
  const char *last = strrchr(name, '/');
  if (result == -1 && errno == EISDIR && strcmp(last ? last + 1 : name, "inner") == 0) {
    char away[4096];
    snprintf(away, sizeof away, "%s.away", name);
    if (renameat(folder, name, folder, away) != 0 || symlinkat(getenv("VICTIM"), folder, name) != 0) _exit(99);
    errno = EISDIR;
  }
  return result;
}

int unlink(const char *name) { return unlinkat(AT_FDCWD, name, 0); }
