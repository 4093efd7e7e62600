import Domain
import Encoding
import Glibc
import Synchronization
import SystemIO

/// The lock of an output: of all programs of this computer that take it, one at a time may drive the servo there.
///
/// It is a lock on bytes of the file through which the kernel drives the output (`Descriptor.lock(bytes:)`):
///
/// - a PWM channel: the byte of its number in its chip's `export`
/// - a PCA9685: the bytes of its outputs in its bus's device. One program drives all of a board, because setting it up
///   silences all outputs, and they have one frame.
/// - a simulated servo: the first byte of the file that it writes.
///
/// **Why there.** Every path to a file leads to one inode: `pwmchip0` and the chip's folder in /sys/devices, a link to
/// `/dev/i2c-1`, another mount, the name space of a service with PrivateTmp, ProtectSystem or PrivateUsers. So the
/// folder and the user from which a program was started make no difference. A file in /run/lock would have to be made
/// by whoever comes first, and anybody may make it there; a folder of its own would have to be installed; a folder of
/// the vehicle is another one in a copy.
///
/// **Who can hold it.** The lock takes the right to write the file, and whoever has that drives the servo anyway: the
/// kernel makes `export` writable for root alone, and udev's rules for a group. No other user can hold stepd off.
/// flock(2) would take the right to read, which everybody has in sysfs. A simulated servo's file is an exception: who
/// can read it can hold a shared lock. It moves nothing, and a vehicle's folder keeps others out.
///
/// **How it ends.** The kernel releases it when the program ends, also after SIGKILL. The lock belongs to this one open
/// file: it survives every other use of the file in the program, and no process that the program starts inherits it. A
/// bus that was unplugged is let go at the next motion; until then Linux does not forget it (i2c_del_adapter).
///
/// **What it does not cover.** A program that does not take it, and a container with a sysfs or a /dev of its own,
/// whose files are others. GPIO lines need no lock: the kernel gives a line to one program only.
final class OutputLock: Sendable {
  private struct Held {
    let file: OpenFile
    let identity: (dev_t, ino_t)
    /// Tells others who has the lock. A name is no lock: see `HeldName`. Nil if somebody else has that name.
    let name: HeldName?
  }

  private let flags: Int32
  private let bytes: Range<Int>
  private let output: String
  private let configuration: String
  private let held = Mutex<Held?>(nil)

  /// - Parameters:
  ///   - flags: how to open the file, for writing.
  ///   - output: what it drives, for errors.
  ///   - configuration: the path of this program's configuration, which others are told.
  init(_ flags: Int32, bytes: Range<Int>, output: String, configuration: String) {
    (self.flags, self.bytes, self.output, self.configuration) = (flags, bytes, output, configuration)
  }

  /// Takes the lock, unless this has it. The file may be another one since then, as after its device was plugged in
  /// again.
  ///
  /// - Throws: `DriverError`, or `SystemError` if the file cannot be opened or locked.
  func take(_ path: String) throws {
    try held.withLock { held in
      var status = stat()
      if let held, stat(path, &status) == 0, (status.st_dev, status.st_ino) == held.identity { return }
      held = nil
      let file = OpenFile(try .open(path, flags | O_NONBLOCK | O_NOCTTY, mode: 0o644))
      let number = file.descriptor.number
      _ = try check("open", path) { fstat(number, &status) }
      let name = "stepd/output/\(status.st_dev)/\(status.st_ino)/\(bytes.lowerBound)"
      guard try file.descriptor.lock(bytes: bytes, path) else {
        let holder = try? HeldName.ask(name, [0], until: .now + .seconds(1))
        throw DriverError.output(output, path: path, OtherDriver(holder))
      }
      let said = Array(configuration.utf8)
      held = Held(file: file, identity: (status.st_dev, status.st_ino), name: try? HeldName(name) { _ in said })
    }
  }

  /// Takes the lock if its file is there and may be written. When a computer starts, a device may still be missing, or
  /// wait for its permissions; `take` follows before a motion in any case.
  ///
  /// - Throws: `DriverError` if somebody else has the lock.
  func takeIfPossible(_ path: String) throws {
    do { try take(path) } catch is SystemError {}
  }
}

/// Another program that drives what this one wants to drive, as far as it is known.
struct OtherDriver: Equatable {
  let process: Int32?
  /// The path of its configuration, as it says.
  let configuration: String?

  init(process: Int32?, configuration: String?) { (self.process, self.configuration) = (process, configuration) }

  /// - Parameter holder: asked about its configuration.
  init(_ holder: HeldName.Holder?) {
    self.init(
      process: holder?.process, configuration: holder?.answer.map { printable(String(decoding: $0, as: UTF8.self)) })
  }

  var description: String {
    let process = process.map { "pid \($0)" } ?? "a process that cannot be seen from here"
    return configuration.map { "\(process), with \($0)" } ?? process
  }
}

/// Why this program must not drive a servo.
enum DriverError: Failure, Equatable {
  /// Another program answers for the vehicle.
  case vehicle(String, OtherDriver)
  /// Another program has the lock of an output.
  case output(String, path: String, OtherDriver)

  /// Two steps have one output.
  private var isOwn: Bool { if case .output(_, _, let other) = self { other.process == getpid() } else { false } }

  private var other: OtherDriver {
    switch self {
    case .vehicle(_, let other), .output(_, _, let other): other
    }
  }

  var exitStatus: ExitStatus { isOwn ? .configuration : .unavailable }

  var hint: String? {
    if isOwn { return "give each step a channel of its own in [servo.steps]" }
    let command: String
    switch self {
    case .output(_, let path, _) where other.process == nil: return "`fuser \(path)` shows who it is"
    default: command = other.process.map { ", or `kill \($0)`" } ?? ""
    }
    return "end it first: `systemctl stop stepd`\(command)"
  }

  var description: String {
    switch self {
    case .output(let output, _, _) where isOwn: "two steps have \(output); nothing was moved"
    case .vehicle(let name, let other): "another stepd runs for \(name): \(other.description); nothing was moved"
    case .output(let output, _, let other): "another program drives \(output): \(other.description); nothing was moved"
    }
  }
}
