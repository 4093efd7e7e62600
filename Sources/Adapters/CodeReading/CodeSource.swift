import Glibc
import SystemIO

/// Where codes come from: a picture in a file or on standard input, or a camera.
package struct CodeSource: ~Copyable {
  /// The major number of Video4Linux's devices (Linux, Documentation/admin-guide/devices.txt).
  private static let videoDevices: UInt = 81

  /// As people see it in errors.
  package let name: String
  package let isCamera: Bool
  let file: Descriptor

  /// - Parameter text: the path of a picture or of a camera (`/dev/video0`), or `-` for standard input.
  package static func open(_ text: String) throws(CodeReaderError) -> CodeSource {
    do throws(CodeReaderError) { return try opening(text) } catch {
      // A camera that is not plugged in has no device, or one that cannot be opened.
      guard text.hasPrefix("/dev/"), case .system(let reason) = error, [ENOENT, ENODEV, ENXIO].contains(reason.code)
      else { throw error }
      throw .noSuchCamera(text)
    }
  }

  private static func opening(_ text: String) throws(CodeReaderError) -> CodeSource {
    if text == "-" {
      guard isatty(STDIN_FILENO) == 0 else { throw .terminal }
      let file = try rethrowing { () throws(SystemError) in
        Descriptor(adopting: try check("read", "standard input") { fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3) })
      }
      return CodeSource(name: "standard input", isCamera: false, file: file)
    }
    var status = stat()
    _ = try rethrowing { () throws(SystemError) in try check("open", text) { stat(text, &status) } }
    if status.st_mode & S_IFMT == S_IFDIR { throw .system(SystemError("read", text, code: EISDIR)) }
    let isCamera = status.st_mode & S_IFMT == S_IFCHR && major(status.st_rdev) == videoDevices
    let file = try rethrowing { () throws(SystemError) in
      // A named pipe that nobody writes to must not keep this from being interrupted: what reads it will wait.
      let file = try Descriptor.open(text, (isCamera ? O_RDWR : O_RDONLY) | O_NONBLOCK)
      let number = file.number
      _ = try check("open", text) { fcntl(number, F_SETFL, 0) }
      return file
    }
    return CodeSource(name: text, isCamera: isCamera, file: file)
  }

  private init(name: String, isCamera: Bool, file: consuming Descriptor) {
    self.name = name
    self.isCamera = isCamera
    self.file = file
  }

  /// As makedev(3) puts it together.
  private static func major(_ device: dev_t) -> UInt { device >> 8 & 0xFFF | device >> 32 & 0xFFFF_F000 }
}
