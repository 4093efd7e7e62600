import CDevices
import Domain
import Encoding
import Glibc
import OBD
import StepController
import SystemIO

/// Why an input cannot be read, where no errno says it.
enum InputError: Failure, Equatable {
  case noLine(Int, chip: String, count: Int)
  /// No chip has this label, or several have it; those that could be seen, and how many others there are.
  case noChip(String, count: Int, [String], others: Int)
  case noFile(String)
  case noLevel(String)

  var exitStatus: ExitStatus {
    switch self {
    case .noLine, .noChip, .noFile: .noInput
    case .noLevel: .badData
    }
  }

  var description: String {
    switch self {
    case .noLine(let line, let chip, let count): "\(chip) has no line \(line), it has \(count)"
    case .noChip(let label, let count, let chips, let others):
      "\(count == 0 ? "no GPIO chip has" : "\(count) GPIO chips have") the label \(label); there are "
        + (chips.isEmpty && others == 0
          ? "none" : (chips + (others > 0 ? ["\(others) that may not be opened"] : [])).joined(separator: ", "))
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

  /// - Parameter path: the device of its chip.
  init(_ path: String, _ number: Int, isActiveLow: Bool) throws {
    let chip = try Descriptor.open(path, O_RDONLY)
    _ = try GPIOChip(chip, path).check(number)
    let (chipNumber, subject) = (chip.number, "line \(number) of \(path)")
    line = Descriptor(
      adopting: try SystemIO.check("use", subject) {
        gpio_take_input(chipNumber, UInt32(number), isActiveLow ? 1 : 0)
      })
    self.chip = subject
    isActive = false
    isActive = try read()
  }

  /// Readable when the line has changed, and since Linux 6.6 when its chip has gone. The caller must not close it.
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

/// A GPIO chip of this computer.
struct GPIOChip {
  private let path: String
  private let label: String
  /// How many lines it has.
  private let count: Int

  init(_ chip: borrowing Descriptor, _ path: String) throws(SystemError) {
    self.path = path
    let number = chip.number
    var label = [CChar](repeating: 0, count: Int(GPIO_MAX_NAME_SIZE))
    count = Int(try SystemIO.check("use", path) { gpio_examine(number, &label) })
    let bytes = label.withUnsafeBytes { $0.prefix { $0 != 0 }.map(\.self) }
    self.label = printable(String(decoding: bytes, as: UTF8.self))
  }

  /// `pinctrl-rp1 (/dev/gpiochip0, 54 lines)`
  var description: String { "\(label.isEmpty ? "no label" : label) (\(path), \(count) lines)" }

  /// Throws if it has no such line. The line is not reserved.
  ///
  /// - Returns: the line, for people.
  func check(_ line: Int) throws(InputError) -> String {
    guard line < count else { throw .noLine(line, chip: path, count: count) }
    return "line \(line) of \(description)"
  }

  /// The path of a chip's device.
  ///
  /// - Parameter name: a path, or a label, which is looked for among the chips that this program may open.
  /// - Throws: `InputError`, or `SystemError`.
  static func path(of name: String, in folder: String = "/dev") throws -> String {
    if name.hasPrefix("/") { return name }
    var (chips, others): ([GPIOChip], Int) = ([], 0)
    for file in try Files.names(in: folder).sorted() where file.hasPrefix("gpiochip") {
      let path = "\(folder)/\(file)"
      // Raspberry Pi OS gives a chip its former name, too, as a link.
      if Files.target(ofLink: path) != nil { continue }
      do throws(SystemError) { chips.append(try GPIOChip(.open(path, O_RDONLY | O_NONBLOCK), path)) } catch {
        others += 1
      }
    }
    let found = chips.filter { $0.label == name }
    guard found.count == 1 else {
      throw InputError.noChip(name, count: found.count, chips.map(\.description), others: others)
    }
    return found[0].path
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
  ///
  /// - Returns: the line, for people; nil for another source.
  func check() throws -> String? {
    switch source {
    case .gpio(let name, let line):
      let path = try GPIOChip.path(of: name)
      return try GPIOChip(.open(path, O_RDONLY), path).check(line)
    case .file(let path):
      _ = try InputFile.read(path)
      return nil
    case .speed(let address):
      try OBDConnection.check(address)
      return nil
    }
  }
}
