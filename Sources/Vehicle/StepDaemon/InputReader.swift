import Domain
import Glibc
import StepController
import Synchronization
import SystemIO

struct InputEvent: Equatable, Sendable {
  let report: SensorReport
  /// Why the input is lost.
  let loss: String?
}

/// Reads the vehicle's inputs on a separate thread, because files and buses may be slow.
///
/// An inactive input is reported at once, an active one after its debounce time. An input that cannot be read is
/// reported as lost. It is tried again each second, and when its file or its chip changes.
package final class InputReader: Sendable {
  let sensors: [SensorID]
  let events: Mailbox<InputEvent>
  private let liveness: Liveness
  private let thread: WorkerThread

  init(_ wirings: [SensorID: InputWiring]) throws {
    sensors = Array(wirings.keys)
    events = try Mailbox()
    liveness = try Liveness()
    thread = try WorkerThread()
    try thread.start { [events, liveness, end = thread.stop] in
      do {
        try InputThread(wirings, events).run(liveness, until: end)
      } catch {
        for sensor in wirings.keys {
          events.post(InputEvent(report: SensorReport(sensor, isActive: nil), loss: "\(error)"))
        }
      }
    }
  }

  /// Whether the thread answers. While it hangs, its last reports may be wrong, and every input counts as lost. When it
  /// goes on, it reports all inputs again.
  ///
  /// Call this again and again while it matters: each call also looks for the answer to an earlier call.
  func answers() -> Bool { liveness.ask() }
}

/// A question from one thread to another. The answer proves that the other thread runs.
private final class Liveness: Sendable {
  private static let timeout = Duration.milliseconds(200)

  let question: Wakeup
  /// When the present unanswered question was asked.
  private let asked = Mutex<Instant?>(nil)

  init() throws { question = try Wakeup() }

  /// Asks, unless an earlier question is still unanswered.
  ///
  /// - Returns: false when the answer is overdue.
  func ask() -> Bool {
    asked.withLock { asked in
      if let asked { return asked.duration(to: .now) < Self.timeout }
      asked = .now
      question.signal()
      return true
    }
  }

  /// - Returns: false when the answer was overdue.
  func answer() -> Bool {
    asked.withLock { asked in
      question.clear()
      defer { asked = nil }
      return asked.map { $0.duration(to: .now) < Self.timeout } ?? true
    }
  }
}

private final class InputThread {
  private let loop: EventLoop
  private let inputs: [WiredInput]

  init(_ wirings: [SensorID: InputWiring], _ events: Mailbox<InputEvent>) throws {
    let loop = try EventLoop()
    self.loop = loop
    inputs = wirings.map { WiredInput($0, $1, loop, events) }
  }

  func run(_ liveness: Liveness, until end: Interruption) throws {
    for input in inputs { input.attempt() }
    try loop.watch(liveness.question.number) { [unowned self] in
      followPaths()
      if !liveness.answer() { for input in inputs { input.repeatReport() } }
    }
    try loop.watch(end.number) { [unowned self] in loop.stop() }
    if inputs.contains(where: \.isFile) { followPathsEachSecond() }
    try loop.run()
  }

  private func followPaths() { for input in inputs { input.followPath() } }

  /// While something moves, each liveness question does that too.
  private func followPathsEachSecond() {
    loop.schedule(at: .now + .seconds(1)) { [unowned self] in
      followPaths()
      followPathsEachSecond()
    }
  }
}

/// One input, from its source to its reports.
private final class WiredInput {
  private static let pause = Duration.seconds(1)
  /// How long a speed counts, from its question on.
  private static let speedLimit = Duration.seconds(1)

  private let sensor: SensorID
  private let wiring: InputWiring
  private unowned let loop: EventLoop
  private let events: Mailbox<InputEvent>
  private var debounce: Debounce
  private var watched: (path: String, file: FileWatch, registration: Registration)?
  private var line: (GPIOLine, Registration)?
  private var speed: (SpeedReader, Registration)?
  /// Ends a speed that is too old.
  private var overdue: Registration?
  private var settling: Registration?
  private var retry: Registration?
  private var reported: InputEvent?

  init(_ sensor: SensorID, _ wiring: InputWiring, _ loop: EventLoop, _ events: Mailbox<InputEvent>) {
    (self.sensor, self.wiring, self.loop, self.events) = (sensor, wiring, loop, events)
    debounce = Debounce(.milliseconds(wiring.debounce))
  }

  /// Reads the input, for the first time or again.
  func attempt() {
    retry?.cancel()
    do {
      // Watch before reading, so that no change is missed in between.
      switch wiring.source {
      case .file(let path):
        try watch(path)
        changed(try InputFile.read(path) != wiring.isActiveLow)
      case .gpio(let chip, let number):
        // A chip with a label may have come back with another number.
        let path = try GPIOChip.path(of: chip)
        try watch(path)
        try takeLine(path, number)
      case .speed(let address):
        try takeSpeed(address)
      }
    } catch {
      lose("\(error)")
    }
  }

  var isFile: Bool { if case .file = wiring.source { true } else { false } }

  /// Reads the file that the path leads to now, if that is in another folder than the watched one.
  func followPath() {
    guard isFile, let watched, !watched.file.isInPlace else { return }
    stopWatching()
    attempt()
  }

  /// Watches the file or the chip's device, and nothing else. Linux before 6.6 does not wake a line's reader when its
  /// chip goes, so the device's file has to tell it.
  private func watch(_ path: String) throws {
    if watched?.path == path { return }
    stopWatching()
    let file = try FileWatch(path, includingContent: isFile)
    let registration = try loop.watch(file.number) { [unowned self] in
      switch try file.next() {
      case .none:
        break
      case .changed:
        attempt()
      case .folderGone:
        stopWatching()
        lose("the folder of \(path) has gone")
      }
    }
    watched = (path, file, registration)
  }

  private func stopWatching() {
    watched?.registration.cancel()
    watched = nil
  }

  private func takeLine(_ path: String, _ number: Int) throws {
    letGo()
    let line = try GPIOLine(path, number, isActiveLow: wiring.isActiveLow)
    let registration = try loop.watch(line.number) { [unowned self] in
      do throws(SystemError) {
        for isActive in try line.changes() { changed(isActive) }
      } catch {
        lose("\(error)")
      }
    }
    self.line = (line, registration)
    changed(line.isActive)
  }

  /// Reads the vehicle's speed from now on. The reader tries by itself again what fails.
  private func takeSpeed(_ address: OBDAddress) throws {
    if speed != nil { return }
    let reader = try SpeedReader(address)
    var reason: String?
    let registration = try loop.receive(reader.events) { [unowned self] event in
      switch event {
      case .speed(let speed, let asked) where asked + Self.speedLimit > .now:
        reason = nil
        overdue?.cancel()
        overdue = loop.schedule(at: asked + Self.speedLimit) { [unowned self] in
          changed(nil, reason ?? "the adapter has told no speed for a second")
        }
        changed(speed == 0)
      case .speed, .noSpeed:
        // The next answer may be better; until then, the last speed counts for its time.
        reason = if case .noSpeed(let text) = event { text } else { "the adapter takes more than a second" }
        if debounce.isActive == nil { changed(nil, reason) }
      case .lost(let reason):
        overdue?.cancel()
        changed(nil, reason)
      }
    }
    speed = (reader, registration)
  }

  private func letGo() {
    line?.1.cancel()
    line = nil
  }

  private func lose(_ reason: String) {
    letGo()
    changed(nil, reason)
    retry?.cancel()
    retry = loop.schedule(at: .now + Self.pause) { [unowned self] in attempt() }
  }

  private func changed(_ level: Bool?, _ loss: String? = nil) {
    debounce.take(level, at: .now)
    report(loss)
    settling?.cancel()
    settling = debounce.due.map { due in
      loop.schedule(at: due) { [unowned self] in
        debounce.settle(at: .now)
        report()
      }
    }
  }

  private func report(_ loss: String? = nil) {
    // No level is known yet.
    if debounce.isActive == nil, loss == nil { return }
    let event = InputEvent(report: SensorReport(sensor, isActive: debounce.isActive), loss: loss)
    if event == reported { return }
    reported = event
    events.post(event)
  }

  func repeatReport() {
    if let reported { events.post(reported) }
  }
}
