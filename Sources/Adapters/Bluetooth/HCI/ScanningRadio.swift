import Domain
import Ranging
import SystemIO

/// A controller that scans, on either kind of link.
///
/// Other programs may share the controller, and it has only one scan. bluetoothd ends the scan when it starts and
/// stops, or makes the scan report each device once. The kernel shows such commands. The scan is restarted some time
/// after the last of them. An earlier restart would interrupt their sequence, and their next command would be refused.
final class ScanningRadio: Radio {
  private let controller: HCIController
  private let interruption: Interruption?
  /// Whether the controller has Bluetooth 5's commands. Then only those may be used: after the first of them it refuses
  /// the old ones, and vice versa (Core 5.4, Vol 4, Part E, 3.1.1).
  private let extended: Bool
  private var isOpen = false

  /// How long other programs must have left the scan alone.
  private static let settlingTime = Duration.milliseconds(500)
  /// After this much silence, the scan is restarted in any case. While this program was suspended (SIGSTOP, or a
  /// sleeping machine), the socket may have had no room for other programs' commands. If there is no beacon, the
  /// restart is harmless.
  private static let longestSilence = Duration.seconds(10)
  /// How many times in a row a restart may fail. The controller refuses it while other programs use it, and the adapter
  /// is down for about a second when bluetoothd restarts.
  private static let attempts = 10
  private var failures = 0
  private var lastPacket = Instant.now
  private var lastRestart = Instant.now

  /// Reports once that another program ended the scan; nil after that.
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

  /// Does nothing while this program connects with the adapter.
  private func startScan() throws(RadioError) {
    try AdapterUse.beginScan(controller.name) { () throws(RadioError) in try startScanNow() }
  }

  private func startScanNow() throws(RadioError) {
    // A killed program leaves the controller scanning, and then the controller accepts no parameters.
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

  /// Restarts a scan that another program has ended.
  private func restartScan() throws(RadioError) {
    if !controller.isScanning, ownEnd == nil {
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

  /// When to restart the scan.
  private var restart: Instant? {
    guard !controller.needsInitialization else { return nil }
    if AdapterUse.isConnecting(controller.name) { return .now + .milliseconds(50) }
    if let ownEnd, !controller.isScanning { return ownEnd }
    return controller.isScanning
      ? max(lastPacket, lastRestart) + Self.longestSilence
      : max(controller.lastInterference, lastRestart) + Self.settlingTime
  }

  /// When this program last ended a scan or an attempt to connect, since this scan was last started.
  private var ownEnd: Instant? { AdapterUse.lastEnd(controller.name).flatMap { $0 > lastRestart ? $0 : nil } }

  deinit { close() }

  func next(until deadline: UnixTime?) throws(RadioError) -> RadioEvent {
    while true {
      if let first = heard.first {
        // It was already in the socket, but it was heard after this deadline.
        if let deadline, first.time > deadline { return .deadline(first.time) }
        _ = heard.popFirst()
        return .heard(first)
      }
      let end = deadline.map(clock.instant)
      let packet = try controller.receive(until: restart.map { min($0, end ?? $0) } ?? end, interruption)
      let now = Instant.now
      if let packet {
        if case .event(let event) = packet {
          let time = timeOfHearing(now, emptied: controller.emptied)
          heard.add(event.span, heardAt: clock.time(time))
        }
        lastPacket = now
      }
      // Applies also while useless packets keep coming.
      if let end, end <= now, heard.first == nil { return .deadline(clock.time(now)) }
      if let restart, restart <= now { try restartScan() }
    }
  }

  func close() {
    guard isOpen else { return }
    isOpen = false
    AdapterUse.endScan(controller.name) {
      // If this fails, the controller is gone: there is nothing left to do.
      _ = try? controller.request(.setScanEnable(false, extended: extended), timeout: .seconds(1), nil)
    }
  }
}
