import Bluetooth
import Domain
import Encoding
import Glibc
import Ranging
import SystemIO
import Terminal

/// Where the recordings come from by which a step is calibrated.
protocol PositionSource {
  /// - Returns: nil when this position is left out.
  func record(_ step: Step, at position: CalibrationPosition) throws -> PositionRecording?
}

/// Recordings that were made before: a capture for each position.
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

/// Recordings that are made now, by someone who is told where to stand.
struct GuidedPositions: PositionSource {
  private let vehicle: Vehicle
  private let radio: RadioSpec
  /// At each position.
  private let seconds: Double
  private let interruption: Interruption
  private let questions: Questions
  private let console: Console

  init(
    vehicle: Vehicle, radio: RadioSpec, seconds: Double, interruption: Interruption, questions: Questions,
    console: Console
  ) throws {
    if case .btsnoop = radio {
      throw CommandFailure(
        .usage, "\(radio) is one recording, and each position needs its own",
        hint: "put them into a folder and use --captures")
    }
    self.vehicle = vehicle
    self.radio = radio
    self.seconds = seconds
    self.interruption = interruption
    self.questions = questions
    self.console = console
  }

  func record(_ step: Step, at position: CalibrationPosition) throws -> PositionRecording? {
    let carry = position.carry == .hand ? "in hand" : "in a pocket"
    let request = """
      \(position.distance.rawValue) m in front of the \(step.id) step, \(carry): press Enter (s: leave it out) 
      """
    while true {
      if try questions.ask(request).lowercased().hasPrefix("s") { return nil }
      let recording: PositionRecording
      do {
        recording = try listen(PositionRecording(of: step, at: position, among: vehicle.steps))
      } catch let error as RadioError where error != .interrupted {
        // Without another try, everything that was measured so far is lost.
        console.note(printable("\(error)"))
        guard try questions.confirm("try again?", suggestion: true) else { throw error }
        continue
      }
      let flaws = recording.flaws
      console.note("  \(CalibrationReport.columns(recording))")
      for flaw in flaws { console.note("  \(flaw)") }
      if flaws.isEmpty { return recording }
      let isFatal = flaws.contains(where: \.isFatal)
      let question = isFatal ? "repeat it? (n: leave it out)" : "repeat it?"
      if try !questions.confirm(question, suggestion: isFatal) { return isFatal ? nil : recording }
    }
  }

  /// A radio is opened for each position, so that nothing is heard from the way there.
  private func listen(_ empty: PositionRecording) throws -> PositionRecording {
    let radio = try radio.open(interruption: interruption, tell: console.note)
    let progress = console.progress
    defer {
      radio.close()
      progress.clear()
    }
    var recording = empty
    for tick in 1...Int((seconds * 2).rounded(.up)) {
      let elapsed = min(Double(tick) / 2, seconds)
      let deadline = UnixTime(microseconds: radio.start.microseconds + Int64(elapsed * 1e6))
      guard try recording.listen(to: radio, of: vehicle, until: deadline) else { break }
      progress.show("  \(CalibrationReport.columns(recording)), \(Int(seconds - elapsed)) s to go")
    }
    return recording
  }
}

extension PositionRecording {
  /// Adds what a radio hears until a deadline.
  ///
  /// - Returns: false when the radio ended.
  fileprivate mutating func listen(to radio: any Radio, of vehicle: Vehicle, until deadline: UnixTime?) throws -> Bool {
    while true {
      switch try radio.next(until: deadline) {
      case .heard(let advertisement):
        guard let beacon = advertisement.iBeacon, beacon.uuid == vehicle.uuid else { continue }
        hear(beacon, rssi: advertisement.rssi, at: advertisement.time.seconds(since: radio.start))
      case .deadline: return true
      case .ended: return false
      }
    }
  }
}
