import Ranging
import Domain
import SystemIO

/// A controller that scans, whichever way leads to it.
///
/// Others may share the controller, and it has but one scan: bluetoothd ends it when it starts and stops, or makes it
/// one that reports each device once. The kernel shows their commands, and a moment after the last one the scan is
/// started again. Who does that at once breaks into a sequence of commands, and the other's next is refused.
final class ScanningRadio: Radio {
  private let controller: HCIController
  private let interruption: Interruption?
  /// Whether the controller has Bluetooth 5's commands. It must then be spoken to in those alone: after the first, it
  /// refuses the old ones, and the other way round (Core 5.4, Vol 4, Part E, 3.1.1).
  private let extended: Bool
  private var isOpen = false

  /// How long others must have been done with the scan.
  private static let settlingTime = Duration.milliseconds(500)
  /// After so long a silence the scan is started again in any case: while this program was stopped (SIGSTOP, or a machine
  /// that slept), the socket had no room for the commands of others. It harms nobody where there really is no beacon.
  private static let longestSilence = Duration.seconds(10)
  /// How often in a row that may fail: the controller refuses it when others are at it, and the adapter is down for a
  /// second or so when bluetoothd is restarted.
  private static let attempts = 10
  private var failures = 0
  private var lastPacket = ContinuousClock.now
  private var lastRestart = ContinuousClock.now

  /// Says once that the scan was taken away; nil when it has been said.
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
    // A program that was killed leaves the controller scanning, and then it takes no parameters.
    do {
      try controller.request(.setScanEnable(false, extended: extended), interruption)
    } catch .refused {
      // It was not scanning.
    }
    try controller.request(.setScanParameters(extended: extended), interruption)
    // From here on the scan may be running, whatever becomes of the answer.
    isOpen = true
    try controller.request(.setScanEnable(true, extended: extended), interruption)
  }

  /// Starts the scan that somebody else has ended.
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
        // It was already in the socket when its reader came, too late for this deadline.
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
      // Also while packets keep coming that tell nothing.
      if let end, end <= now, heard.first == nil { return .deadline(clock.time(now)) }
      if let restart, restart <= now { try restartScan() }
    }
  }

  func close() {
    guard isOpen else { return }
    isOpen = false
    // Nothing is left to be done if this fails: the controller is gone, or deaf.
    _ = try? controller.request(.setScanEnable(false, extended: extended), timeout: .seconds(1), nil)
  }
}
