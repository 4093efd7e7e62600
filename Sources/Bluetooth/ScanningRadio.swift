import Ranging
import StepDomain
import SystemIO

/// A controller that scans, whichever way leads to it.
final class ScanningRadio: Radio {
  private let controller: HCIController
  private let interruption: Interruption?
  /// Whether the controller has Bluetooth 5's commands. It must then be spoken to in those alone: after the first, it
  /// refuses the old ones, and the other way round (Core 5.4, Vol 4, Part E, 3.1.1).
  private let extended: Bool
  private var isScanning = false

  private(set) var start: UnixTime
  private let startInstant: ContinuousClock.Instant

  private var heard = HeardQueue()

  /// Starts a passive scan.
  init(_ link: any HCILink, _ interruption: Interruption?) throws(RadioError) {
    controller = HCIController(link)
    self.interruption = interruption
    extended = try controller.initialize(interruption)
    start = UnixTime(microseconds: WallClock.microseconds)
    startInstant = .now
    do throws(RadioError) {
      // A program that was killed leaves the controller scanning, and then it takes no parameters.
      do throws(RadioError) {
        try controller.request(.setScanEnable(false, extended: extended), interruption)
      } catch .refused {
        // It was not scanning.
      }
      try controller.request(.setScanParameters(extended: extended), interruption)
      // From here on the scan may be running, whatever becomes of the answer.
      isScanning = true
      try controller.request(.setScanEnable(true, extended: extended), interruption)
    } catch {
      close()
      throw error
    }
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
      guard let event = try controller.receiveEvent(until: deadline.map(instant), interruption) else {
        return .deadline(now)
      }
      heard.add(event.span, heardAt: now)
    }
  }

  func close() {
    guard isScanning else { return }
    isScanning = false
    // Nothing is left to be done if this fails: the controller is gone, or deaf.
    _ = try? controller.request(.setScanEnable(false, extended: extended), timeout: .seconds(1), nil)
  }

  /// What the radio's clock shows.
  private var now: UnixTime {
    let elapsed = startInstant.duration(to: .now).components
    return UnixTime(
      microseconds: start.microseconds + elapsed.seconds * 1_000_000 + elapsed.attoseconds / 1_000_000_000_000)
  }

  private func instant(_ time: UnixTime) -> ContinuousClock.Instant {
    startInstant + .microseconds(time.microseconds &- start.microseconds)
  }
}
