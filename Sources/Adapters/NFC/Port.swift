import Glibc
import SystemIO

/// The address at which libnfc finds a reader: `DRIVER[:PORT[:SPEED]]`.
///
/// libnfc knows the drivers; this type reads the parts that can be checked before libnfc runs.
struct ConnectionString: Equatable {
  let text: String
  /// The device file of the port, if the reader has one.
  let path: String?
  /// Baud rate, if the port is a serial line.
  let speed: Int?

  private static let serialDrivers = ["pn532_uart", "arygon", "acr122s"]
  /// The speeds that libnfc can set.
  static let speeds = [9600, 19200, 38400, 57600, 115_200, 230_400, 460_800]

  init(_ text: String) throws(NFCError) {
    func malformed(_ reason: String) -> NFCError { .malformedConnection(text, reason: reason) }
    // nfc-types.h: NFC_BUFSIZE_CONNSTRING, including the NUL.
    guard text.utf8.count < 1024 else { throw malformed("longer than 1023 bytes") }
    let parts = text.split(separator: ":", omittingEmptySubsequences: false).map(String.init)
    guard !parts[0].isEmpty, text.unicodeScalars.allSatisfy({ $0.value > 0x20 && $0.value != 0x7F }) else {
      throw malformed("expected DRIVER:PORT, as pn532_uart:/dev/ttyUSB0")
    }
    let port = parts.count > 1 ? parts[1] : ""
    self.text = text
    if Self.serialDrivers.contains(parts[0]) {
      guard !port.isEmpty else { throw malformed("the port is missing, as in \(parts[0]):/dev/ttyUSB0") }
      path = port
      guard parts.count > 2 else {
        // The default of pn532_uart; the other drivers' default is 9600.
        speed = parts[0] == "pn532_uart" ? 115_200 : 9600
        return
      }
      guard let number = Int(parts[2]), Self.speeds.contains(number) else {
        let known = Self.speeds.map(String.init).joined(separator: ", ")
        throw malformed("the speed must be one of \(known)")
      }
      speed = number
    } else {
      path = port.hasPrefix("/") ? port : nil
      speed = nil
    }
  }

  /// Whether a PN532 is at the other end of a serial line: such a reader can be tested without libnfc.
  var isPN532OnSerialLine: Bool { text.hasPrefix("pn532_uart:") }
}

/// The device file of a reader. It is checked before libnfc opens it, because libnfc only says "invalid". It is locked,
/// so that no other stepctl uses it at the same time.
final class Port {
  let path: String
  private let file: Descriptor

  /// - Parameter isSerial: whether it must be a serial line.
  init(_ path: String, isSerial: Bool) throws(NFCError) {
    self.path = path
    do {
      file = try Descriptor.open(path, O_RDWR | O_NOCTTY | O_NONBLOCK)
    } catch {
      switch error.code {
      case ENOENT, ENOTDIR, ENXIO, ENODEV: throw .noSuchPort(path: path)
      case EACCES, EPERM: throw .notPermitted(path: path)
      case EBUSY: throw .inUse(path: path)
      case EISDIR: throw .notATerminal(path: path)
      default: throw .unusablePort(error)
      }
    }
    guard !isSerial || isatty(file.number) == 1 else { throw .notATerminal(path: path) }
    // The lock ends with the descriptor, however this process ends.
    guard flock(file.number, LOCK_EX | LOCK_NB) == -1 else { return }
    throw errno == EWOULDBLOCK ? .inUse(path: path) : .unusablePort(SystemError("lock", path))
  }

  /// Whether the reader was unplugged: the line has hung up.
  var isUnplugged: Bool {
    var entry = pollfd(fd: file.number, events: 0, revents: 0)
    return poll(&entry, 1, 0) > 0 || access(path, F_OK) != 0
  }

  /// Why libnfc could not open the PN532 on this line; nil if the reader answers.
  func diagnosis(speed: Int) -> NFCError? {
    let heard = ask(speed)
    if Self.isAcknowledged(heard) { return nil }
    for other in ConnectionString.speeds.reversed() where other != speed {
      if Self.isAcknowledged(ask(other)) { return .wrongSpeed(path: path, speed: speed, right: other) }
    }
    return heard.isEmpty ? .silent(path: path, speed: speed) : .garbled(path: path, speed: speed)
  }

  /// Whether the received bytes contain an acknowledgement (PN532 User Manual 6.2.1.3).
  private static func isAcknowledged(_ heard: [UInt8]) -> Bool {
    let acknowledgement: [UInt8] = [0x00, 0x00, 0xFF, 0x00, 0xFF, 0x00]
    return heard.indices.contains { heard[$0...].starts(with: acknowledgement) }
  }

  /// The answer to GetFirmwareVersion (7.2.2), after the long preamble that wakes up the chip (7.2.11).
  private func ask(_ speed: Int) -> [UInt8] {
    let question: [UInt8] =
      [0x55, 0x55, 0x00, 0x00, 0x00] + [0x00, 0x00, 0xFF, 0x02, 0xFE, 0xD4, 0x02, 0x2A, 0x00]
    guard (try? SerialLine.prepare(file, speed: speed, path)) != nil else { return [] }
    guard (try? file.write(question, path)) != nil else { return [] }
    let number = file.number
    var heard: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 256)
    let end = Instant.now + .milliseconds(100)
    while heard.count <= 4096, (try? waitReadable([number], until: end)) == [true] {
      let count = read(number, &chunk, chunk.count)
      guard count > 0 else { break }
      heard += chunk[..<count]
    }
    return heard
  }
}
