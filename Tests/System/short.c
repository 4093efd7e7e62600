// A kernel, or an emulator, that tells of a TCP connection no more than its state (TCP_INFO in tcp(7)): four bytes, as
// qemu-user 7.2 does. Loaded before the program (LD_PRELOAD).
#define _GNU_SOURCE
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

int getsockopt(int descriptor, int level, int option, void *restrict value, socklen_t *restrict size) {
  if (level == IPPROTO_TCP && option == TCP_INFO && *size > 4) *size = 4;
  return (int)syscall(SYS_getsockopt, descriptor, level, option, value, size);
}
