import Domain
import Ranging
import SystemIO

/// A controller that scans, at either kind of link.
///
/// Other programs may share the controller, and it has only one scan. bluetoothd ends it when it starts and stops, or
/// makes it report each device once. The kernel shows their commands. A moment after the last one the scan is started
/// again: earlier, this would break into their sequence of commands, and their next command would be refused.
final class ScanningRadio: Radio {
  private let controller: HCIController
  private let interruption: Interruption?
  /// Whether the controller has Bluetooth 5's commands. Then only those may be used: after the first of them it refuses
  /// the old ones, and the other way round (Core 5.4, Vol 4, Part E, 3.1.1).
  private let extended: Bool
  private var isOpen = false

  /// How long other programs must have left the scan alone.
  private static let settlingTime = Duration.milliseconds(500)
  /// After such a silence the scan is started again in any case. While this program was stopped (SIGSTOP, or a machine
  /// that slept), the socket may have had no room for other programs' commands. Where there is no beacon, it is
  /// harmless.
  private static let longestSilence = Duration.seconds(10)
  /// How often in a row that may fail. The controller refuses it while other programs use it, and the adapter is down
  /// for about a second when bluetoothd is restarted.
  private static let attempts = 10
  private var failures = 0
  private var lastPacket = ContinuousClock.now
  private var lastRestart = ContinuousClock.now

  /// Tells once that another program ended the scan; nil when that was told.
  private var tell: ((String) -> Void)?

  private let clock: LiveClock
  var start: UnixTime { clock.start }

  private var heard = HeardQueue()

  /// Starts a passive scan.
  init(_ link: any HCILink, _ interruption: Interruption?, tell: @escaping (String) -> Void) throws(RadioError) {
    controller = HCIController(link)
    self.interruption = interruption
    self.tell = tell
    extended = try controller.initialize(interruption)
    clock = LiveClock()
    do {
      try startScan()
    } catch {
      close()
      throw error
    }
  }

  private func startScan() throws(RadioError) {
    // A program that was killed leaves the controller scanning, and then the controller accepts no parameters.
    do {
      try controller.request(.setScanEnable(false, extended: extended), interruption)
    } catch .refused {
      // It was not scanning.
    }
    try controller.request(.setScanParameters(extended: extended), interruption)
    // From here on the scan may be running, even if no answer comes.
    isOpen = true
    try controller.request(.setScanEnable(true, extended: extended), interruption)
  }

  /// Starts the scan again that another program has ended.
  private func restartScan() throws(RadioError) {
    if !controller.isScanning {
      tell?("another program ended the scan of \(controller.name); it is started again")
      tell = nil
    }
    do {
      try startScan()
      failures = 0
    } catch {
      failures += 1
      switch error {
      case .refused, .adapterDown: if failures == Self.attempts { throw error }
      default: throw error
      }
    }
    lastRestart = .now
  }

  /// When the scan is to be started again.
  private var restart: ContinuousClock.Instant? {
    guard !controller.needsInitialization else { return nil }
    return controller.isScanning
      ? max(lastPacket, lastRestart) + Self.longestSilence
      : max(controller.lastInterference, lastRestart) + Self.settlingTime
  }

  deinit { close() }

  func next(until deadline: UnixTime?) throws(RadioError) -> RadioEvent {
    while true {
      if let first = heard.first {
        // It was already in the socket, but was heard after this deadline.
        if let deadline, first.time > deadline { return .deadline(first.time) }
        _ = heard.popFirst()
        return .heard(first)
      }
      let end = deadline.map(clock.instant)
      let packet = try controller.receive(until: restart.map { min($0, end ?? $0) } ?? end, interruption)
      let now = ContinuousClock.now
      if let packet {
        if case .event(let event) = packet {
          let time = timeOfHearing(now, emptied: controller.emptied)
          heard.add(event.span, heardAt: clock.time(time))
        }
        lastPacket = now
      }
      // Also while useless packets keep coming.
      if let end, end <= now, heard.first == nil { return .deadline(clock.time(now)) }
      if let restart, restart <= now { try restartScan() }
    }
  }

  func close() {
    guard isOpen else { return }
    isOpen = false
    // If this fails, the controller is gone: there is nothing left to do.
    _ = try? controller.request(.setScanEnable(false, extended: extended), timeout: .seconds(1), nil)
  }
}
