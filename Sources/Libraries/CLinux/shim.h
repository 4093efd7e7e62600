// C library headers that the Glibc module leaves out.
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/timex.h>
#include <unistd.h>

#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>

// The C library declares these only with _GNU_SOURCE, and the Glibc module is built without it.
extern int pipe2(int descriptors[2], int flags);
extern int close_range(unsigned first, unsigned last, int flags);

// Swift cannot call variadic functions.
static inline int control_process(int option, unsigned long first, unsigned long second) {
  return prctl(option, first, second, 0, 0);
}

// capset(2) with three empty sets; the C library has no function for it. systemd may kill a confined service for this
// call, so it is skipped if the sets are already empty (capget(2)).
static inline int drop_capabilities(void) {
  struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  struct __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3] = {{0}};
  if (syscall(SYS_capget, &header, sets) == -1) return -1;
  int any = 0;
  for (int i = 0; i < _LINUX_CAPABILITY_U32S_3; i++) {
    any |= sets[i].effective || sets[i].permitted || sets[i].inheritable;
    sets[i] = (struct __user_cap_data_struct){0};
  }
  return any ? (int)syscall(SYS_capset, &header, sets) : 0;
}

// Clears the capabilities that this program's children inherit (PR_CAP_AMBIENT in prctl(2)).
static inline int clear_ambient_capabilities(void) {
  return prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
}

// pidfd_open(2), for which the C library has no function: readable when the process has ended.
static inline int open_process(pid_t process) { return (int)syscall(SYS_pidfd_open, process, 0); }

// The value of `arch` in seccomp_data for this program's system calls; 0 if nobody has checked that the calls of
// Confinement.computeOnly are right for this architecture.
static inline unsigned own_audit_architecture(void) {
#if defined(__x86_64__)
  return AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
  return AUDIT_ARCH_AARCH64;
#else
  return 0;
#endif
}
