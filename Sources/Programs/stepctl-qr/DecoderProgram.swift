import CodeReading
import Domain
import Encoding
import Glibc
import SystemIO

/// `stepctl-qr`: reads a picture from standard input, or one picture after another from a camera, and writes their
/// codes to standard output (`DecoderReply`).
@main
enum DecoderProgram {
  static func main() { run(ProgramArguments.typed) }

  /// Bytes: more than the photographs of the largest cameras.
  private static let largestFile = 32 << 20
  private static let output = Descriptor(adopting: STDOUT_FILENO)
  /// Bytes of address space: a progressive JPEG of the largest picture takes six bytes per pixel.
  private static let memory: UInt = 1 << 30

  /// - Parameter arguments: only `picture` or `camera`.
  private static func run(_ arguments: [String]) -> Never {
    guard isatty(STDOUT_FILENO) == 0, ["picture", "camera"].contains(arguments.first), arguments.count == 1 else {
      _ = Array("stepctl-qr reads pictures for stepctl, which starts it\n".utf8)
        .withUnsafeBytes { write(STDERR_FILENO, $0.baseAddress, $0.count) }
      exit(ExitStatus.usage.rawValue)
    }
    let isCamera = arguments == ["camera"]
    do {
      guard (try? confine(isCamera: isCamera)) != nil else { throw PictureFlaw.unconfined }
      try isCamera ? watch() : look()
    } catch let flaw as PictureFlaw {
      try? say(.flaw(flaw))
    } catch {
      exit(ExitStatus.inputOutput.rawValue)
    }
    exit(ExitStatus.done.rawValue)
  }

  /// A picture may be an attack on the libraries that read it, so nothing is read unless all of this succeeds.
  private static func confine(isCamera: Bool) throws(SystemError) {
    try Confinement.limit(memory: memory, seconds: isCamera ? 3600 : 30)
    try Confinement.computeOnly(controlsDevices: isCamera)
  }

  private static func look() throws {
    let bytes: [UInt8]
    do {
      bytes = try Files.readAll(Descriptor(adopting: STDIN_FILENO), "standard input", limit: largestFile)
    } catch {
      throw error.code == EFBIG ? PictureFlaw.tooLarge : .unreadable
    }
    let picture = try GrayPicture(bytes)
    let codes = picture.codes
    // A picture that came only in part may lack just the code.
    if codes.isEmpty, picture.isDamaged { throw PictureFlaw.damaged }
    for code in codes { try say(.code(code)) }
    try say(.end)
  }

  /// Decodes pictures until stepctl has seen enough, and ends this process.
  private static func watch() throws {
    let camera = try Camera(STDIN_FILENO)
    var said: Set<[UInt8]> = []
    while true {
      for code in try camera.next()?.codes ?? [] where said.insert(code).inserted { try say(.code(code)) }
    }
  }

  private static func say(_ reply: DecoderReply) throws { try output.write(Frames.frame(reply.body)) }
}
