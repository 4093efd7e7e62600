import Glibc
import SystemIO

/// The source of codes: a picture in a file or on standard input, or a camera.
package struct CodeSource: ~Copyable {
  /// The major number of Video4Linux's devices (Linux, Documentation/admin-guide/devices.txt).
  private static let videoDevices: UInt = 81

  /// Its name in errors.
  package let name: String
  package let isCamera: Bool
  let file: Descriptor

  /// - Parameter text: the path of a picture or of a camera (`/dev/video0`), or `-` for standard input.
  package static func open(_ text: String) throws(CodeReaderError) -> CodeSource {
    if text == "-", isatty(STDIN_FILENO) != 0 { throw .terminal }
    do {
      return text == "-" ? try standardInput() : try file(text)
    } catch {
      // An unplugged camera has no device, or one that cannot be opened.
      let isMissing = text.hasPrefix("/dev/") && [ENOENT, ENODEV, ENXIO].contains(error.code)
      throw isMissing ? .noSuchCamera(text) : .system(error)
    }
  }

  /// The cameras of this computer, the first one first. A camera can have a second device, for data about its pictures,
  /// which takes none (Linux, Documentation/ABI/testing/sysfs-class-video4linux: `index`).
  ///
  /// - Parameters:
  ///   - devices: the folder of devices.
  ///   - classes: the folder in which the kernel describes them.
  package static func cameras(
    devices: String = "/dev", classes: String = "/sys/class/video4linux"
  ) -> [String] {
    let numbers = ((try? Files.names(in: devices)) ?? []).compactMap { name in
      name.hasPrefix("video") ? UInt(name.dropFirst("video".count)) : nil
    }
    return numbers.sorted().filter { number in
      guard let index = try? Files.read("\(classes)/video\(number)/index", limit: 16) else { return true }
      return index.first == UInt8(ascii: "0")
    }.map { "\(devices)/video\($0)" }
  }

  private static func standardInput() throws(SystemError) -> CodeSource {
    let name = "standard input"
    let number = try check("read", name) { fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3) }
    return CodeSource(name: name, isCamera: false, file: Descriptor(adopting: number))
  }

  private static func file(_ path: String) throws(SystemError) -> CodeSource {
    var status = stat()
    _ = try check("open", path) { stat(path, &status) }
    if status.st_mode & S_IFMT == S_IFDIR { throw SystemError("read", path, code: EISDIR) }
    let isCamera = status.st_mode & S_IFMT == S_IFCHR && major(status.st_rdev) == videoDevices
    // A named pipe without a writer must not block this process: the process that reads it will wait.
    let file = try Descriptor.open(path, (isCamera ? O_RDWR : O_RDONLY) | O_NONBLOCK)
    let number = file.number
    _ = try check("open", path) { fcntl(number, F_SETFL, 0) }
    return CodeSource(name: path, isCamera: isCamera, file: file)
  }

  private init(name: String, isCamera: Bool, file: consuming Descriptor) {
    self.name = name
    self.isCamera = isCamera
    self.file = file
  }

  /// The inverse of makedev(3).
  private static func major(_ device: dev_t) -> UInt { device >> 8 & 0xFFF | device >> 32 & 0xFFFF_F000 }
}
