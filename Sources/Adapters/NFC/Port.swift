import Glibc
import SystemIO

/// The device file of a reader, looked at before libnfc opens it, which says only "invalid"; and held, so that no other
/// stepctl uses it at the same time.
final class Port {
  let path: String
  private let file: Descriptor

  /// - Parameter isSerial: whether it has to be a serial line.
  init(_ path: String, isSerial: Bool) throws(NFCError) {
    self.path = path
    file = try Self.open(path)
    let number = file.number
    guard !isSerial || isatty(number) == 1 else { throw .notATerminal(path: path) }
    do throws(SystemError) {
      // It goes with the descriptor, however this process ends.
      _ = try check("lock", path) { flock(number, LOCK_EX | LOCK_NB) }
    } catch {
      throw error.code == EWOULDBLOCK ? .inUse(path: path) : .port(error)
    }
  }

  private static func open(_ path: String) throws(NFCError) -> Descriptor {
    do throws(SystemError) {
      return try Descriptor.open(path, O_RDWR | O_NOCTTY | O_NONBLOCK)
    } catch {
      switch error.code {
      case ENOENT, ENOTDIR, ENXIO, ENODEV: throw .noSuchPort(path: path)
      case EACCES, EPERM: throw .notPermitted(path: path)
      case EBUSY: throw .inUse(path: path)
      case EISDIR: throw .notATerminal(path: path)
      default: throw .port(error)
      }
    }
  }

  /// Whether what was plugged in is gone: the line has hung up.
  var isUnplugged: Bool {
    var entry = pollfd(fd: file.number, events: 0, revents: 0)
    return poll(&entry, 1, 0) > 0 || access(path, F_OK) != 0
  }

  /// Why libnfc could not open the PN532 on this line.
  func diagnosis(speed: Int) -> NFCError? {
    let heard = ask(speed)
    if heard.firstRange(of: Self.acknowledgement) != nil { return nil }
    for other in ConnectionString.speeds.reversed() where other != speed {
      if ask(other).firstRange(of: Self.acknowledgement) != nil {
        return .wrongSpeed(path: path, speed: speed, right: other)
      }
    }
    return heard.isEmpty ? .silent(path: path, speed: speed) : .garbled(path: path, speed: speed)
  }

  /// PN532 User Manual 6.2.1.3.
  private static let acknowledgement: [UInt8] = [0x00, 0x00, 0xFF, 0x00, 0xFF, 0x00]

  /// What comes in answer to GetFirmwareVersion (7.2.2), after the long preamble that wakes it up (7.2.11).
  private func ask(_ speed: Int) -> [UInt8] {
    let question: [UInt8] =
      [0x55, 0x55, 0x00, 0x00, 0x00] + [0x00, 0x00, 0xFF, 0x02, 0xFE, 0xD4, 0x02, 0x2A, 0x00]
    var settings = termios()
    let number = file.number
    guard tcgetattr(number, &settings) == 0 else { return [] }
    cfmakeraw(&settings)
    cfsetspeed(&settings, Self.constant(speed))
    settings.c_cflag |= tcflag_t(CLOCAL | CREAD)
    tcsetattr(number, TCSANOW, &settings)
    tcflush(number, TCIOFLUSH)
    do throws(SystemError) {
      try file.write(question, path)
      var heard: [UInt8] = []
      let end = ContinuousClock.now + .milliseconds(100)
      while try waitReadable([number], until: end)[0] {
        var chunk = [UInt8](repeating: 0, count: 256)
        let count = read(number, &chunk, chunk.count)
        guard count > 0 else { break }
        heard += chunk[..<count]
        if heard.count > 4096 { break }
      }
      return heard
    } catch {
      return []
    }
  }

  private static func constant(_ speed: Int) -> speed_t {
    let number =
      switch speed {
      case 19200: B19200
      case 38400: B38400
      case 57600: B57600
      case 115_200: B115200
      case 230_400: B230400
      case 460_800: B460800
      default: B9600
      }
    return speed_t(number)
  }
}
