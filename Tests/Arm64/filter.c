// qemu-user applies no seccomp filter: it refuses one with EINVAL, and a program that cannot confine itself reads
// nothing. Under qemu this library, loaded before each program, takes the filter instead and keeps it in FOLDER, if that
// is defined, for test_arm64.py to compare with the kernel's own table of system calls. So nothing is confined: a real
// kernel has to show that (stepd-pi(7)).
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

int prctl(int option, ...) {
  va_list values;
  va_start(values, option);
  unsigned long first = va_arg(values, unsigned long), second = va_arg(values, unsigned long);
  unsigned long third = va_arg(values, unsigned long), fourth = va_arg(values, unsigned long);
  va_end(values);
  if (option != PR_SET_SECCOMP || first != SECCOMP_MODE_FILTER)
    return (int)syscall(SYS_prctl, option, first, second, third, fourth);
#ifdef FOLDER
  const struct sock_fprog *program = (const void *)second;
  size_t size = program->len * sizeof *program->filter;
  char path[256];
  snprintf(path, sizeof path, "%s/%s.filter", FOLDER, program_invocation_short_name);
  int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (file == -1 || write(file, program->filter, size) != (ssize_t)size) return -1;
  return close(file);
#else
  return 0;
#endif
}
