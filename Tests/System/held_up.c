// A busy machine: 20 ms pass before whatever a program asks or tells the kernel of a socket, once it is connected.
// Loaded before the program (LD_PRELOAD).
#define _GNU_SOURCE
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

int getsockopt(int descriptor, int level, int name, void *value, socklen_t *size) {
  usleep(20000);
  return (int)syscall(SYS_getsockopt, descriptor, level, name, value, size);
}

int setsockopt(int descriptor, int level, int name, const void *value, socklen_t size) {
  if (level == SOL_TCP && name == TCP_QUICKACK) usleep(20000);
  return (int)syscall(SYS_setsockopt, descriptor, level, name, value, size);
}
