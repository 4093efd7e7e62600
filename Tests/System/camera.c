// A camera of Video4Linux made of a file: loaded before stepctl and stepctl-qr (LD_PRELOAD), it answers for the kernel.
//
// The file that CAMERA names looks like a device, and holds one picture after the other, CAMERA_SIZE (as 640x480) of
// CAMERA_FORMAT (a fourcc), in lines of CAMERA_LINE bytes and CAMERA_BYTES each. The last one is shown for ever.
// What stepctl does in the wrong order, or with what it was not given, ends it.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/videodev2.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

enum { device = 0, most = 8 };

static unsigned width, height, line, bytes, format, count;
static char *buffers[most];
static int queued[most], first, waiting, streaming;

static void refuse(const char *why) {
  // Its standard error is /dev/null: the test sees how it ended.
  (void)why;
  _exit(99);
}

__attribute__((constructor)) static void read_environment(void) {
  const char *size = getenv("CAMERA_SIZE"), *code = getenv("CAMERA_FORMAT");
  if (!size || !code) return;
  if (sscanf(size, "%ux%u", &width, &height) != 2) refuse("CAMERA_SIZE");
  format = v4l2_fourcc(code[0], code[1], code[2], code[3]);
  line = atoi(getenv("CAMERA_LINE"));
  bytes = atoi(getenv("CAMERA_BYTES"));
}

int stat(const char *path, struct stat *status) {
  if (fstatat(AT_FDCWD, path, status, 0) == -1) return -1;
  const char *camera = getenv("CAMERA");
  if (camera && strcmp(path, camera) == 0) {
    status->st_mode = S_IFCHR | 0600;
    status->st_rdev = makedev(81, 0);
  }
  return 0;
}

void *mmap(void *address, size_t length, int protection, int flags, int descriptor, off_t offset) {
  void *(*real)(void *, size_t, int, int, int, off_t) = dlsym(RTLD_NEXT, "mmap");
  if (descriptor != device || !(flags & MAP_SHARED)) return real(address, length, protection, flags, descriptor, offset);
  const size_t index = offset / 0x100000;
  if (index >= count || length != bytes || protection != PROT_READ) refuse("mmap");
  buffers[index] = real(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return buffers[index];
}

static int control(unsigned long request, void *argument) {
  struct v4l2_buffer *buffer = argument;
  switch (request) {
  case VIDIOC_QUERYCAP: {
    struct v4l2_capability *capability = argument;
    capability->capabilities = V4L2_CAP_DEVICE_CAPS | V4L2_CAP_VIDEO_CAPTURE | V4L2_CAP_STREAMING;
    capability->device_caps = getenv("CAMERA_IS_OUTPUT") ? V4L2_CAP_VIDEO_OUTPUT | V4L2_CAP_STREAMING
                                                         : V4L2_CAP_VIDEO_CAPTURE | V4L2_CAP_STREAMING;
    return 0;
  }
  case VIDIOC_ENUM_FMT: {
    struct v4l2_fmtdesc *description = argument;
    const unsigned formats[] = {v4l2_fourcc('H', '2', '6', '4'), format};
    if (description->type != V4L2_BUF_TYPE_VIDEO_CAPTURE || description->index > 1) return EINVAL;
    description->pixelformat = formats[description->index];
    return 0;
  }
  case VIDIOC_S_FMT: {
    struct v4l2_format *wanted = argument;
    if (wanted->fmt.pix.pixelformat != format) return EINVAL;
    if (getenv("CAMERA_IS_BUSY")) return EBUSY;
    wanted->fmt.pix.width = width;
    wanted->fmt.pix.height = height;
    wanted->fmt.pix.bytesperline = line;
    wanted->fmt.pix.sizeimage = bytes;
    return 0;
  }
  case VIDIOC_REQBUFS: {
    struct v4l2_requestbuffers *wanted = argument;
    if (wanted->memory != V4L2_MEMORY_MMAP || wanted->count > most) return EINVAL;
    count = wanted->count;
    return 0;
  }
  case VIDIOC_QUERYBUF:
    if (buffer->index >= count) return EINVAL;
    buffer->length = bytes;
    buffer->m.offset = buffer->index * 0x100000;
    return 0;
  case VIDIOC_QBUF:
    if (buffer->index >= count || !buffers[buffer->index]) refuse("queue");
    queued[(first + waiting++) % most] = buffer->index;
    return 0;
  case VIDIOC_STREAMON: streaming = 1; return 0;
  case VIDIOC_DQBUF: {
    if (!streaming || waiting == 0) refuse("dequeue");
    if (getenv("CAMERA_IS_STUCK")) for (;;) usleep(100000);
    char *place = buffers[queued[first]];
    char *next = malloc(bytes);
    // At its end the last picture, in which the buffer still is what it was, or the one before it.
    static char *last;
    if (read(device, next, bytes) == (ssize_t)bytes) {
      free(last);
      last = next;
    } else {
      free(next);
      if (getenv("CAMERA_IS_UNPLUGGED")) return ENODEV;
    }
    if (!last) return EIO;
    memcpy(place, last, bytes);
    memset(buffer, 0, sizeof *buffer);
    buffer->index = queued[first];
    buffer->bytesused = bytes;
    first = (first + 1) % most;
    waiting--;
    return 0;
  }
  default: return ENOTTY;
  }
}

int ioctl(int descriptor, unsigned long request, ...) {
  va_list arguments;
  va_start(arguments, request);
  void *argument = va_arg(arguments, void *);
  va_end(arguments);
  if (descriptor == device && width > 0 && _IOC_TYPE(request) == 'V') {
    errno = control(request, argument);
    return errno == 0 ? 0 : -1;
  }
  int (*real)(int, unsigned long, void *) = dlsym(RTLD_NEXT, "ioctl");
  return real(descriptor, request, argument);
}
