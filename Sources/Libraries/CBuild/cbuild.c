#include "cbuild.h"

#if defined __x86_64__
#define ARCHITECTURE "amd64"
#elif defined __aarch64__
#define ARCHITECTURE "arm64"
#else
#define ARCHITECTURE "unknown"
#endif

const char *cbuild_commit(void) {
#ifdef STEPCTL_COMMIT
  return STEPCTL_COMMIT;
#else
  return 0;
#endif
}

const char *cbuild_architecture(void) { return ARCHITECTURE; }

#if defined STEPCTL_COMMIT && defined STEPCTL_COMMIT_TIME && defined STEPCTL_SWIFT
// The same for whoever makes packages of programs that this machine cannot run, with the time of the commit (Unix time) and
// the version of Swift's compiler and library: readelf --string-dump=.stepctl
__attribute__((used, retain, section(".stepctl")))
static const char stamp[] = STEPCTL_VERSION " " STEPCTL_COMMIT " " STEPCTL_COMMIT_TIME " " ARCHITECTURE " " STEPCTL_SWIFT;
#endif
