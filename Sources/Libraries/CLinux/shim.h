// C library headers that the Glibc module leaves out.
#include <errno.h>
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/timex.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/keyctl.h>
#include <linux/seccomp.h>

// The C library declares these only with _GNU_SOURCE, and the Glibc module is built without it.
extern int pipe2(int descriptors[2], int flags);
extern int close_range(unsigned first, unsigned last, int flags);
extern int accept4(int socket, struct sockaddr *address, socklen_t *size, int flags);

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

// An exclusive lock on bytes of a file (F_OFD_SETLK in fcntl(2)): 0 taken, 1 somebody else has it, -1 and errno. The lock
// belongs to the open file, not to the process, so no other use of the file in this process can release it.
static inline int lock_bytes(int file, off_t first, off_t count) {
#ifndef F_OFD_SETLK
#define F_OFD_SETLK 37  // The C library declares it only with _GNU_SOURCE.
#endif
  struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = first, .l_len = count};
  if (fcntl(file, F_OFD_SETLK, &lock) == 0) return 0;
  return errno == EAGAIN || errno == EACCES ? 1 : -1;
}

// Whether a file has an access control list (acl(5)).
static inline int has_access_list(const char *path) {
  return getxattr(path, "system.posix_acl_access", 0, 0) > 0;
}

// Who listens at the other end of a local socket (SO_PEERCRED in unix(7)). A process of another PID namespace is 0.
static inline int peer_of_socket(int socket, pid_t *process, uid_t *user) {
  // struct ucred, which the C library declares only with _GNU_SOURCE.
  struct { pid_t process; uid_t user; gid_t group; } peer = {0};
  socklen_t size = sizeof peer;
  if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) == -1) return -1;
  *process = peer.process;
  *user = peer.user;
  return 0;
}

// Clears the capabilities that this program's children inherit (PR_CAP_AMBIENT in prctl(2)).
static inline int clear_ambient_capabilities(void) {
  return prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
}

// pidfd_open(2), for which the C library has no function: readable when the process has ended.
static inline int open_process(pid_t process) { return (int)syscall(SYS_pidfd_open, process, 0); }

// add_key(2) and keyctl(2), for which the C library has no functions. Keys are of the type "user" (keyrings(7)).
static inline int add_user_key(const char *name, const void *secret, size_t size, int keyring) {
  return (int)syscall(SYS_add_key, "user", name, secret, size, (long)keyring);
}
static inline int find_user_key(int keyring, const char *name) {
  return (int)syscall(SYS_keyctl, (long)KEYCTL_SEARCH, (long)keyring, "user", name, 0L);
}
static inline long read_key(int key, void *secret, size_t size) {
  return syscall(SYS_keyctl, (long)KEYCTL_READ, (long)key, secret, size, 0L);
}
static inline int control_key(int operation, int key, long argument) {
  return (int)syscall(SYS_keyctl, (long)operation, (long)key, argument, 0L, 0L);
}

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
