import Glibc
import CodeReading
import SystemIO

/// What stepctl-qr does: reads a picture, or a camera's one after another, from standard input, and writes what codes
/// there are to standard output (`DecoderReply`).
package enum DecoderProgram {
  /// Bytes: more than the photographs of the largest cameras take.
  private static let largestFile = 32 << 20
  /// Bytes of address space: a progressive JPEG of the largest picture takes six for each pixel.
  private static let memory: UInt = 1 << 30

  /// - Parameter arguments: `picture` or `camera`, as its only one.
  package static func run(_ arguments: [String]) -> Never {
    guard isatty(STDOUT_FILENO) == 0, ["picture", "camera"].contains(arguments.first), arguments.count == 1 else {
      _ = Array("stepctl-qr reads pictures for stepctl, which starts it\n".utf8)
        .withUnsafeBytes { write(STDERR_FILENO, $0.baseAddress, $0.count) }
      exit(64)
    }
    let isCamera = arguments == ["camera"]
    do {
      try Confinement.limit(memory: memory, seconds: isCamera ? 3600 : 30)
      try Confinement.computeOnly(controlsDevices: isCamera)
      try isCamera ? watch() : look()
    } catch let flaw as PictureFlaw {
      try? say(.flaw(flaw))
    } catch {
      exit(74)
    }
    exit(0)
  }

  private static func look() throws {
    let bytes: [UInt8]
    do throws(SystemError) {
      bytes = try Files.readAll(Descriptor(adopting: STDIN_FILENO), "standard input", limit: largestFile)
    } catch {
      throw error.code == EFBIG ? PictureFlaw.tooLarge : .unreadable
    }
    for code in try GrayPicture(bytes).codes { try say(.code(code)) }
    try say(.end)
  }

  /// Until whoever started this has seen enough, and ends it.
  private static func watch() throws {
    let camera = try Camera(STDIN_FILENO)
    var said: Set<[UInt8]> = []
    while true {
      for code in try camera.next()?.codes ?? [] where said.insert(code).inserted { try say(.code(code)) }
    }
  }

  private static func say(_ reply: DecoderReply) throws {
    var rest = reply.bytes[...]
    while !rest.isEmpty {
      rest = rest.dropFirst(
        try check("write") { rest.withUnsafeBytes { write(STDOUT_FILENO, $0.baseAddress, $0.count) } })
    }
  }
}
