#include <linux/videodev2.h>

// Swift does not import macros with computed values.
static const unsigned long video_query_capabilities = VIDIOC_QUERYCAP;
static const unsigned long video_enumerate_formats = VIDIOC_ENUM_FMT;
static const unsigned long video_set_format = VIDIOC_S_FMT;
static const unsigned long video_request_buffers = VIDIOC_REQBUFS;
static const unsigned long video_query_buffer = VIDIOC_QUERYBUF;
static const unsigned long video_queue_buffer = VIDIOC_QBUF;
static const unsigned long video_dequeue_buffer = VIDIOC_DQBUF;
static const unsigned long video_stream_on = VIDIOC_STREAMON;

static const unsigned video_format_grey = V4L2_PIX_FMT_GREY;
static const unsigned video_format_nv12 = V4L2_PIX_FMT_NV12;
static const unsigned video_format_yuv420 = V4L2_PIX_FMT_YUV420;
static const unsigned video_format_yuyv = V4L2_PIX_FMT_YUYV;
static const unsigned video_format_uyvy = V4L2_PIX_FMT_UYVY;
static const unsigned video_format_mjpeg = V4L2_PIX_FMT_MJPEG;
static const unsigned video_format_jpeg = V4L2_PIX_FMT_JPEG;
