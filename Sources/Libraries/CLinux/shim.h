// Headers of the C library that the Glibc module leaves out.
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

// The C library has these with _GNU_SOURCE only, without which the Glibc module is made.
extern int pipe2(int descriptors[2], int flags);
extern int close_range(unsigned first, unsigned last, int flags);

// Swift cannot call variadic functions.
static inline int control_process(int option, unsigned long first, unsigned long second) {
  return prctl(option, first, second, 0, 0);
}

// capset(2), which the C library has no function for, with three empty sets. A service that systemd confines may be
// killed for that call, so it is not made where the sets are empty already (capget(2)).
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

// The capabilities that programs inherit which this one starts (PR_CAP_AMBIENT in prctl(2)): none from here on.
static inline int clear_ambient_capabilities(void) {
  return prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
}

// pidfd_open(2), which the C library has no function for: readable when the process has ended.
static inline int open_process(pid_t process) { return (int)syscall(SYS_pidfd_open, process, 0); }

// What seccomp_data has as `arch` for the system calls of this program; 0 where nobody has checked
// that the calls of Confinement.computeOnly are the right ones.
static inline unsigned own_audit_architecture(void) {
#if defined(__x86_64__)
  return AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
  return AUDIT_ARCH_AARCH64;
#else
  return 0;
#endif
}
