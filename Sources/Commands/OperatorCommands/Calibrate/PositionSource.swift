import Bluetooth
import CommandParts
import Domain
import Encoding
import Evaluation
import Glibc
import Ranging
import SystemIO
import Terminal

/// Provides the recordings for the calibration of a step.
protocol PositionSource {
  /// - Returns: nil when the user skips this position.
  func record(_ step: Step, at position: CalibrationPosition) throws -> PositionRecording?
  /// Discards the stored recordings of these steps.
  func forget(_ steps: [Step]) throws
  /// Says what is stored for the next run, when the calibration ends early.
  func tellKept(_ steps: [Step])
}

/// Existing recordings: a capture for each position.
struct CapturedPositions: PositionSource {
  private let vehicle: Vehicle
  private let folder: String
  private let interruption: Interruption
  private let console: Console

  init(vehicle: Vehicle, folder: String, interruption: Interruption, console: Console) throws {
    guard Files.isFolder(folder) else {
      throw SystemError("open", folder, code: Files.exists(folder) ? ENOTDIR : ENOENT)
    }
    self.vehicle = vehicle
    self.folder = folder
    self.interruption = interruption
    self.console = console
  }

  // Captures of the user are never deleted.
  func forget(_ steps: [Step]) {}
  func tellKept(_ steps: [Step]) {}

  func record(_ step: Step, at position: CalibrationPosition) throws -> PositionRecording? {
    let path = "\(folder)/\(step.id)-\(position.distance.rawValue)-\(position.carry.rawValue).btsnoop"
    if access(path, F_OK) == -1, errno == ENOENT {
      console.note("there is no \(path)")
      return nil
    }
    let radio = try RadioSpec.btsnoop(path).open(interruption: interruption)
    defer { radio.close() }
    var recording = PositionRecording(of: step, at: position, among: vehicle.steps)
    _ = try recording.listen(to: radio, of: vehicle, until: nil)
    for flaw in recording.flaws { console.note("\(path)\(flaw.isFatal ? " is left out" : ""): \(flaw)") }
    return recording.flaws.contains(where: \.isFatal) ? nil : recording
  }
}

/// Recordings made now by a person who is told where to stand, and recordings that an earlier run stored.
final class GuidedPositions: PositionSource {
  /// A fade of this length would be mistaken for the level of the place.
  private static let shortest = 5.0
  /// Waiting for more is useless after this time without a packet.
  private static let silence = 10.0

  private let vehicle: Vehicle
  private let radio: RadioSpec
  /// The longest time to listen at each position, seconds.
  private let longest: Double
  private let interruption: Interruption
  private let questions: Questions
  private let console: Console
  private var progress: CalibrationProgress
  private let now: () -> Int64
  /// Whether measurements can be stored.
  private var keeps = true

  init(
    vehicle: Vehicle, radio: RadioSpec, longest: Double, interruption: Interruption, questions: Questions,
    console: Console, progress: CalibrationProgress, now: @escaping () -> Int64
  ) throws {
    if radio.isCapture {
      throw CommandFailure(
        .usage, "\(radio) is one recording, and each position needs its own",
        hint: "put them into a folder and use --captures")
    }
    self.vehicle = vehicle
    self.radio = radio
    self.longest = longest
    self.interruption = interruption
    self.questions = questions
    self.console = console
    self.progress = progress
    self.now = now
  }

  /// Explains the procedure, and reads what an earlier run stored.
  func begin(_ steps: [Step], again: Bool) throws {
    if again {
      // Other steps' positions stay. A file that cannot be read is replaced.
      var earlier = progress
      if (try? earlier.read()) != nil { progress = earlier }
      try forget(steps)
    } else {
      try progress.read()
    }
    let all = CalibrationPosition.all.count
    let names = steps.map(\.id.description).joined(separator: ", ")
    console.note(
      """
      Calibrates \(printable(vehicle.name)): \(names).
      There are \(all) positions in front of each step. Stand still at each until enough
      was heard, which takes \(Int(Self.shortest)) to \(Int(Self.silence)) seconds. Nothing is written before you agree.
      What was measured is kept in \(progress.path):
      after q or Control-C the next run goes on from there.
      """)
    let kept = progress.count(of: steps)
    if kept > 0 {
      console.note(
        """
        \(kept) of \(all * steps.count) positions are kept, the last from \(dateAndTime(progress.noted)); \
        --again measures them again.
        """)
    }
  }

  func forget(_ steps: [Step]) throws {
    if keeps { try progress.forget(steps) }
  }

  func tellKept(_ steps: [Step]) {
    let kept = progress.count(of: steps)
    guard keeps, kept > 0 else { return }
    console.note(
      """
      \(kept) of \(CalibrationPosition.all.count * steps.count) positions are kept in \(progress.path); \
      the next run goes on from there
      """)
  }

  func record(_ step: Step, at position: CalibrationPosition) throws -> PositionRecording? {
    switch progress.found(of: step, at: position) {
    case .recorded(let recording)?: return recording
    case .leftOut?: return nil
    case nil: break
    }
    let recording = try measure(step, at: position)
    if let recording, console.isJSON {
      try console.result(CalibrationReport.json(recording, number: position.number, isUsed: true))
    }
    guard keeps else { return recording }
    do throws(SystemError) {
      try progress.note(recording.map { .recorded($0) } ?? .leftOut, of: step, at: position, now: now())
    } catch {
      keeps = false
      console.note("the measurement cannot be saved: \(error)")
    }
    return recording
  }

  /// - Returns: nil when the user skips it.
  private func measure(_ step: Step, at position: CalibrationPosition) throws -> PositionRecording? {
    let carry = position.carry == .hand ? "in hand" : "in a pocket"
    let request = """
      \(position.number) of \(CalibrationPosition.all.count): \(position.distance.rawValue) m in front of the \
      \(step.id) step, \(carry): press Enter (s: leave it out, q: quit) 
      """
    while true {
      switch try questions.press(request, keys: ["s", "q"]) {
      case "s": return nil
      case "q": throw console.quit
      default: break
      }
      let recording: PositionRecording
      do {
        let heard = try listen(PositionRecording(of: step, at: position, among: vehicle.steps))
        guard let heard else { return nil }
        recording = heard
      } catch let error as RadioError where error != .interrupted {
        console.note(printable("\(error)"))
        switch try questions.confirm("try again? (s: leave it out, q: quit)", suggestion: true, keys: ["s", "q"]) {
        case "y": continue
        case "s": return nil
        case "q": throw console.quit
        default: throw error
        }
      }
      let flaws = recording.flaws
      console.note("  \(CalibrationReport.columns(recording))")
      for flaw in flaws { console.note("  \(flaw)") }
      if flaws.isEmpty { return recording }
      let isFatal = flaws.contains(where: \.isFatal)
      let question = "repeat it? (\(isFatal ? "n or s" : "n: keep it, s"): leave it out, q: quit)"
      switch try questions.confirm(question, suggestion: isFatal, keys: ["s", "q"]) {
      case "y": break
      case "s": return nil
      case "q": throw console.quit
      default: return isFatal ? nil : recording
      }
      if console.isJSON {
        try console.result(CalibrationReport.json(recording, number: position.number, isUsed: false))
      }
    }
  }

  /// Listens until it has heard enough. Opens the radio again for each position, so that nothing from the walk between
  /// positions is heard.
  ///
  /// - Returns: nil when the user skips this position.
  private func listen(_ empty: PositionRecording) throws -> PositionRecording? {
    let radio = try radio.open(interruption: interruption, tell: console.note, trace: console.trace)
    let progress = console.progress
    let keyboard = questions.keyboard()
    defer {
      radio.close()
      progress.clear()
    }
    var recording = empty
    var hasWarned = false
    for tick in 1...Int((longest * 2).rounded(.up)) {
      let elapsed = min(Double(tick) / 2, longest)
      let deadline = UnixTime(microseconds: radio.start.microseconds + Int64(elapsed * 1e6))
      guard try recording.listen(to: radio, of: vehicle, until: deadline) else { break }
      switch keyboard?.pressed()?.first(where: { "qQsS".contains($0) })?.lowercased() {
      case "q": throw console.quit
      case "s": return nil
      default: break
      }
      let packets = recording.packets
      if packets >= PositionRecording.enoughPackets, elapsed >= min(Self.shortest, longest) { break }
      if packets == 0, elapsed >= Self.silence { break }
      progress.show("  \(CalibrationReport.columns(recording)), of \(PositionRecording.enoughPackets)")
      // At this rate the longest time would not be enough.
      let isSlow = Double(packets) / elapsed * longest < Double(PositionRecording.leastPackets)
      if !hasWarned, elapsed >= min(Self.shortest, longest / 2), isSlow {
        hasWarned = true
        progress.clear()
        console.note(
          "  only \(packets) packets in \(Int(elapsed.rounded())) s: is the beacon on, and is this its step?")
      }
    }
    return recording
  }
}

extension Console {
  /// The end by the key q. A person knows why it ends; a program needs an error.
  var quit: any Error {
    isJSON ? CommandFailure(.failure, "ended by q: the vehicle file was not written") : Ended(.failure)
  }
}

extension CalibrationPosition {
  /// Numbers start at 1, in the order of the questions. `all` has every position.
  fileprivate var number: Int { CalibrationPosition.all.firstIndex(of: self)! + 1 }
}

extension PositionRecording {
  /// Adds the readings of a radio until a deadline.
  ///
  /// - Returns: false when the radio ended.
  fileprivate mutating func listen(to radio: any Radio, of vehicle: Vehicle, until deadline: UnixTime?) throws -> Bool {
    while true {
      switch try radio.next(until: deadline) {
      case .heard(let advertisement):
        for beacon in advertisement.iBeacons where beacon.uuid == vehicle.uuid {
          hear(beacon, rssi: advertisement.rssi, at: advertisement.time.seconds(since: radio.start))
        }
      case .deadline: return true
      case .ended: return false
      }
    }
  }
}
