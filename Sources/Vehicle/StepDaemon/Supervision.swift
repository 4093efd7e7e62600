import CDevices
import Glibc
import StepdConfiguration
import SystemIO

/// Tells systemd, the computer's watchdog, or both, that stepd's loop runs in time.
///
/// A timer of the loop does this, but only when the timer was not late: a late loop is as bad as one that hangs.
final class Supervision {
  /// How late the timer may be. A motion is then late by five ticks.
  static let longestDelay = Duration.milliseconds(100)
  private static let longestPause = Duration.milliseconds(500)

  private let manager: ServiceManager?
  private let watchdog: Watchdog?
  private let pause: Duration?
  private let now: () -> Instant
  private weak var loop: EventLoop?

  init(
    _ manager: ServiceManager?, _ watchdog: Watchdog?, now: @escaping () -> Instant = { .now }
  ) {
    (self.manager, self.watchdog, self.now) = (manager, watchdog, now)
    // Four times within the shorter of the two time limits.
    pause = [manager?.patience, watchdog?.patience].compactMap { $0.map { min($0 / 4, Self.longestPause) } }.min()
  }

  /// The loop is about to run.
  func begin(on loop: EventLoop) {
    self.loop = loop
    manager?.tell("READY=1")
    if pause != nil { turn(due: now()) }
  }

  private func turn(due: Instant) {
    let time = now()
    if due.duration(to: time) <= Self.longestDelay {
      if manager?.patience != nil { manager?.tell("WATCHDOG=1") }
      watchdog?.feed()
    }
    guard let pause else { return }
    let next = time + pause
    loop?.schedule(at: next) { [weak self] in self?.turn(due: next) }
  }

  /// A line for `systemctl status`.
  func tell(status: String) { manager?.tell("STATUS=\(status)") }

  func stopping() { manager?.tell("STOPPING=1") }

  /// The loop has ended, and nothing moves.
  func end() { watchdog?.close() }
}

/// systemd, as a service talks to it: datagrams to a socket (sd_notify(3)), without waiting.
final class ServiceManager {
  /// After this time without a message, systemd regards the service as dead; nil if it does not.
  let patience: Duration?
  private let sender: DatagramSender

  /// - Returns: nil if systemd did not ask for messages.
  init?(_ environment: (String) -> String? = { getenv($0).map { String(cString: $0) } }) throws(SystemError) {
    guard let name = environment("NOTIFY_SOCKET"), !name.isEmpty else { return nil }
    let isOurs = environment("WATCHDOG_PID").map { $0 == "\(getpid())" } ?? true
    let period = isOurs ? environment("WATCHDOG_USEC").flatMap { Int64($0) } : nil
    patience = period.flatMap { $0 > 0 ? .microseconds($0) : nil }
    sender = try DatagramSender(to: name, "NOTIFY_SOCKET")
  }

  func tell(_ state: String) { sender.send(Array(state.utf8)) }
}

/// The computer's watchdog: restarts the computer if it is not fed in time (Linux, watchdog-api.rst).
final class Watchdog {
  private enum Word: Sendable {
    case feed, disarm

    /// Any byte feeds it; after a V, closing the device stops it.
    var byte: UInt8 { self == .feed ? 0 : UInt8(ascii: "V") }
  }

  let patience: Duration
  private let worker: Worker<Word>

  /// Starts the watchdog: it counts from here on.
  init(_ setting: ControllerFile.Watchdog) throws {
    patience = .seconds(setting.timeout)
    let path = setting.device
    let device = try Descriptor.open(path, O_WRONLY)
    let number = device.number
    do {
      _ = try check("set the time of", path) { watchdog_set_timeout(number, Int32(setting.timeout)) }
      // A device may be at the end of a slow bus.
      worker = try Worker { words in for word in words { try? device.write([word.byte]) } }
    } catch {
      try? device.write([Word.disarm.byte])
      throw error
    }
  }

  func feed() { worker.post(.feed) }

  /// Stops the watchdog, because this program ends on purpose.
  func close() {
    worker.post(.disarm)
    worker.finish(within: .seconds(1))
  }
}

extension ControllerFile.Watchdog {
  /// Throws if the device does not exist. The device is not opened: that would start it.
  func check() throws(SystemError) {
    var status = stat()
    _ = try SystemIO.check("open", device) { stat(device, &status) }
    guard status.st_mode & S_IFMT == S_IFCHR else { throw SystemError("open", device, code: ENODEV) }
    guard access(device, W_OK) == 0 else { throw SystemError("open", device) }
  }
}
