import CDevices
import Configuration
import Glibc
import SystemIO

/// Tells systemd, the computer's watchdog, or both, that stepd's loop turns in time.
///
/// It is told by a timer of the loop, and only when that timer was not late: a loop that is held up is worth as little
/// as one that hangs.
final class Supervision {
  /// How late a turn may be. Then a motion is late by five ticks.
  static let longestDelay = Duration.milliseconds(100)
  private static let longestPause = Duration.milliseconds(500)

  private let manager: ServiceManager?
  private let watchdog: Watchdog?
  private let pause: Duration?
  private let now: () -> ContinuousClock.Instant
  private weak var loop: EventLoop?

  init(
    _ manager: ServiceManager?, _ watchdog: Watchdog?, now: @escaping () -> ContinuousClock.Instant = { .now }
  ) {
    (self.manager, self.watchdog, self.now) = (manager, watchdog, now)
    // Four times in the shorter of the two patiences.
    pause = [manager?.patience, watchdog?.patience].compactMap { $0.map { min($0 / 4, Self.longestPause) } }.min()
  }

  /// The loop is about to run.
  func begin(on loop: EventLoop) {
    self.loop = loop
    manager?.tell("READY=1")
    if pause != nil { turn(due: now()) }
  }

  private func turn(due: ContinuousClock.Instant) {
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

/// systemd, as a service speaks with it: datagrams to a socket (sd_notify(3)). It is not waited for.
final class ServiceManager {
  /// After how long without a word it takes the service for dead; nil where it does not.
  let patience: Duration?
  private let sender: DatagramSender

  /// - Returns: nil where systemd did not ask for it.
  init?(_ environment: (String) -> String? = { getenv($0).map { String(cString: $0) } }) throws(SystemError) {
    guard let name = environment("NOTIFY_SOCKET"), !name.isEmpty else { return nil }
    let isOurs = environment("WATCHDOG_PID").map { $0 == "\(getpid())" } ?? true
    let period = isOurs ? environment("WATCHDOG_USEC").flatMap { Int64($0) } : nil
    patience = period.flatMap { $0 > 0 ? .microseconds($0) : nil }
    sender = try DatagramSender(to: name, "NOTIFY_SOCKET")
  }

  func tell(_ state: String) { sender.send(Array(state.utf8)) }
}

/// The computer's watchdog: restarts the computer when it was not fed for a while (Linux, watchdog-api.rst).
final class Watchdog {
  private enum Word: Sendable {
    case feed, disarm

    /// Any byte feeds it; after a V, closing the device stops it.
    var byte: UInt8 { self == .feed ? 0 : UInt8(ascii: "V") }
  }

  let patience: Duration
  private let worker: Worker<Word>

  /// From here on it counts.
  init(_ setting: ControllerFile.Watchdog) throws {
    patience = .seconds(setting.timeout)
    let path = setting.device
    let device = try Descriptor.open(path, O_WRONLY)
    let number = device.number
    do {
      _ = try check("set the time of", path) { watchdog_set_timeout(number, Int32(setting.timeout)) }
      // A device may sit at the end of a slow bus.
      worker = try Worker { words in for word in words { try? device.write([word.byte]) } }
    } catch {
      try? device.write([Word.disarm.byte])
      throw error
    }
  }

  func feed() { worker.post(.feed) }

  /// Stops it: this program ends because it is to end.
  func close() {
    worker.post(.disarm)
    worker.finish(within: .seconds(1))
  }
}

extension ControllerFile.Watchdog {
  /// Throws when there is no such device. It is not opened: that would start it.
  func check() throws(SystemError) {
    var status = stat()
    _ = try SystemIO.check("open", device) { stat(device, &status) }
    guard status.st_mode & S_IFMT == S_IFCHR else { throw SystemError("open", device, code: ENODEV) }
    guard access(device, W_OK) == 0 else { throw SystemError("open", device) }
  }
}
