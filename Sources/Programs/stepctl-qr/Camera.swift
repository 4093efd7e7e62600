import CVideo
package import CodeReading
import Glibc

/// An open Video4Linux camera (https://docs.kernel.org/userspace-api/media/v4l/) that streams into memory shared with
/// the kernel.
package struct Camera {
  private let descriptor: Int32
  private let format: v4l2_pix_format
  private let layout: Layout
  private var buffers: [UnsafeRawBufferPointer] = []

  /// Where the brightness of a pixel is stored.
  private enum Layout {
    /// The first brightness byte, and the distance in bytes to the next.
    case samples(stride: Int, first: Int)
    case jpeg
  }

  /// Formats that need no decoder come first.
  private static let layouts: [(format: UInt32, layout: Layout)] = [
    (video_format_grey, .samples(stride: 1, first: 0)), (video_format_nv12, .samples(stride: 1, first: 0)),
    (video_format_yuv420, .samples(stride: 1, first: 0)), (video_format_yuyv, .samples(stride: 2, first: 0)),
    (video_format_uyvy, .samples(stride: 2, first: 1)), (video_format_mjpeg, .jpeg), (video_format_jpeg, .jpeg),
  ]

  /// Begins to take pictures.
  ///
  /// - Parameter descriptor: lent, open for reading and writing.
  package init(_ descriptor: Int32) throws(PictureFlaw) {
    self.descriptor = descriptor
    var capabilities = v4l2_capability()
    guard ioctl(descriptor, video_query_capabilities, &capabilities) == 0 else { throw .noCamera }
    let has =
      capabilities.capabilities & UInt32(V4L2_CAP_DEVICE_CAPS) != 0
      ? capabilities.device_caps : capabilities.capabilities
    let needs = UInt32(V4L2_CAP_VIDEO_CAPTURE | V4L2_CAP_STREAMING)
    guard has & needs == needs else { throw .noCamera }

    let offered = Self.formats(descriptor)
    guard let choice = Self.layouts.first(where: { offered.contains($0.format) }) else { throw .noCamera }
    var format = v4l2_format()
    format.type = V4L2_BUF_TYPE_VIDEO_CAPTURE.rawValue
    // The driver chooses the nearest available size.
    format.fmt.pix.width = 1280
    format.fmt.pix.height = 720
    format.fmt.pix.pixelformat = choice.format
    format.fmt.pix.field = V4L2_FIELD_NONE.rawValue
    try Self.control(descriptor, video_set_format, &format)
    guard format.fmt.pix.pixelformat == choice.format else { throw .noCamera }
    self.format = format.fmt.pix
    layout = choice.layout
    try start()
  }

  /// Waits for the next picture; nil if it is damaged, as some cameras' first pictures are.
  package func next() throws(PictureFlaw) -> GrayPicture? {
    var buffer = Self.buffer
    try Self.control(descriptor, video_dequeue_buffer, &buffer)
    let index = Int(buffer.index)
    guard buffers.indices.contains(index) else { throw .noCamera }
    let bytes = UnsafeRawBufferPointer(rebasing: buffers[index].prefix(Int(buffer.bytesused)))
    let isDamaged = buffer.flags & UInt32(V4L2_BUF_FLAG_ERROR) != 0
    let picture = isDamaged ? nil : picture(bytes)
    try Self.control(descriptor, video_queue_buffer, &buffer)
    return picture
  }

  // MARK: -

  private mutating func start() throws(PictureFlaw) {
    var request = v4l2_requestbuffers()
    // One buffer is filled while another is decoded.
    request.count = 3
    request.type = V4L2_BUF_TYPE_VIDEO_CAPTURE.rawValue
    request.memory = V4L2_MEMORY_MMAP.rawValue
    try Self.control(descriptor, video_request_buffers, &request)
    for index in 0..<request.count {
      var buffer = Self.buffer
      buffer.index = index
      try Self.control(descriptor, video_query_buffer, &buffer)
      let length = Int(buffer.length)
      guard let memory = mmap(nil, length, PROT_READ, MAP_SHARED, descriptor, off_t(buffer.m.offset)),
        memory != MAP_FAILED
      else { throw .cameraFailed }
      buffers.append(UnsafeRawBufferPointer(start: memory, count: length))
      try Self.control(descriptor, video_queue_buffer, &buffer)
    }
    var type = V4L2_BUF_TYPE_VIDEO_CAPTURE.rawValue
    try Self.control(descriptor, video_stream_on, &type)
  }

  private func picture(_ bytes: UnsafeRawBufferPointer) -> GrayPicture? {
    let (width, height, line) = (Int(format.width), Int(format.height), Int(format.bytesperline))
    switch layout {
    case .jpeg: return try? GrayPicture(jpeg: Array(bytes))
    case .samples(let stride, let first):
      guard width > 0, height > 0, line >= width * stride, bytes.count >= line * (height - 1) + width * stride else {
        return nil
      }
      let pixels = [UInt8](unsafeUninitializedCapacity: width * height) { pixels, count in
        for row in 0..<height {
          for column in 0..<width { pixels[row * width + column] = bytes[row * line + column * stride + first] }
        }
        count = width * height
      }
      return GrayPicture(width: width, height: height, pixels: pixels)
    }
  }

  private static var buffer: v4l2_buffer {
    var buffer = v4l2_buffer()
    buffer.type = V4L2_BUF_TYPE_VIDEO_CAPTURE.rawValue
    buffer.memory = V4L2_MEMORY_MMAP.rawValue
    return buffer
  }

  private static func formats(_ descriptor: Int32) -> [UInt32] {
    var formats: [UInt32] = []
    for index in 0..<64 {
      var description = v4l2_fmtdesc()
      description.index = UInt32(index)
      description.type = V4L2_BUF_TYPE_VIDEO_CAPTURE.rawValue
      guard ioctl(descriptor, video_enumerate_formats, &description) == 0 else { break }
      formats.append(description.pixelformat)
    }
    return formats
  }

  private static func control(
    _ descriptor: Int32, _ request: UInt, _ argument: UnsafeMutableRawPointer
  ) throws(PictureFlaw) {
    while ioctl(descriptor, request, argument) == -1 {
      if errno != EINTR { throw .cameraFailed }
    }
  }
}
