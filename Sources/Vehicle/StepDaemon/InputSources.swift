import CDevices
import Domain
import Glibc
import StepController
import SystemIO

/// Why an input cannot be read, where no errno says it.
enum InputError: Failure, Equatable {
  case noLine(Int, chip: String, count: Int)
  case noFile(String)
  case noLevel(String)

  var exitStatus: ExitStatus {
    switch self {
    case .noLine, .noFile: .noInput
    case .noLevel: .badData
    }
  }

  var description: String {
    switch self {
    case .noLine(let line, let chip, let count): "\(chip) has no line \(line), it has \(count)"
    case .noFile(let path): "\(path) is not a regular file on a file system that reports changes"
    case .noLevel(let path): "\(path) does not hold 0 or 1"
    }
  }
}

/// A line of a GPIO character device, as an input (Linux, gpio/chardev, version 2).
final class GPIOLine {
  private let line: Descriptor
  private let chip: String
  /// The number of the last event.
  private var lastEvent: UInt32 = 0
  private(set) var isActive: Bool

  init(_ path: String, _ number: Int, isActiveLow: Bool) throws {
    let chip = try Descriptor.open(path, O_RDONLY)
    try Self.check(chip, path, number)
    let (chipNumber, subject) = (chip.number, "line \(number) of \(path)")
    line = Descriptor(
      adopting: try SystemIO.check("use", subject) {
        gpio_take_input(chipNumber, UInt32(number), isActiveLow ? 1 : 0)
      })
    self.chip = subject
    isActive = false
    isActive = try read()
  }

  /// Throws if there is no such chip or line. The line is not reserved.
  static func check(_ path: String, _ number: Int) throws { try check(.open(path, O_RDONLY), path, number) }

  private static func check(_ chip: borrowing Descriptor, _ path: String, _ number: Int) throws {
    let chipNumber = chip.number
    let count = try SystemIO.check("use", path) { gpio_count_lines(chipNumber) }
    guard number < count else { throw InputError.noLine(number, chip: path, count: Int(count)) }
  }

  /// Readable when the line has changed, and when its chip has gone. The caller must not close it.
  var number: Int32 { line.number }

  private func read() throws(SystemError) -> Bool {
    try SystemIO.check("read", chip) { gpio_read_input(line.number) } == 1
  }

  /// The levels of the line since the last call, in order. Must be called when the line is readable.
  func changes() throws(SystemError) -> [Bool] {
    var events = [gpio_v2_line_event](repeating: gpio_v2_line_event(), count: 16)
    let (number, size) = (line.number, MemoryLayout<gpio_v2_line_event>.stride)
    let count = try SystemIO.check("read", chip) {
      events.withUnsafeMutableBytes { Glibc.read(number, $0.baseAddress, $0.count) }
    }
    var changes: [Bool] = []
    for event in events[..<(count / size)] {
      let isNow = withUnsafePointer(to: event, gpio_became_active) == 1
      // The line had the other level in between, too briefly to be seen, or the kernel has dropped events.
      if isNow == isActive || event.line_seqno != lastEvent &+ 1 { changes.append(!isNow) }
      changes.append(isNow)
      (isActive, lastEvent) = (isNow, event.line_seqno)
    }
    return changes
  }
}

/// A file that contains `0` or `1` and is written by another program.
enum InputFile {
  /// - Throws: `InputError` or `SystemError`.
  static func read(_ path: String) throws -> Bool {
    // A link may lead to a folder that is not watched. A pipe would block.
    let file = try Descriptor.open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK)
    let number = file.number
    var status = stat()
    _ = try check("open", path) { fstat(number, &status) }
    guard status.st_mode & S_IFMT == S_IFREG, is_kernel_file(number) == 0 else { throw InputError.noFile(path) }
    switch try Files.readAll(file, path, limit: 2) {
    case Array("0".utf8), Array("0\n".utf8): return false
    case Array("1".utf8), Array("1\n".utf8): return true
    default: throw InputError.noLevel(path)
    }
  }
}

extension InputWiring {
  /// Throws if the input cannot be read. A line is not reserved, because another stepd may be running.
  func check() throws {
    switch source {
    case .gpio(let chip, let line): try GPIOLine.check(chip, line)
    case .file(let path): _ = try InputFile.read(path)
    }
  }
}
