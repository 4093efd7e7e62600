// Headers of the C library that the Glibc module leaves out.
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/signalfd.h>
