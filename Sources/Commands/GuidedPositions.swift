import Bluetooth
import Domain
import Encoding
import Ranging
import SystemIO
import Terminal

/// Recordings that are made now, by someone who is told where to stand.
struct GuidedPositions: PositionSource {
  let vehicle: Vehicle
  let radio: RadioSpec
  /// At each position.
  let seconds: Double
  let interruption: Interruption
  let questions: Questions
  let console: Console
  private let progress: ProgressLine

  init(
    vehicle: Vehicle, radio: RadioSpec, seconds: Double, interruption: Interruption, questions: Questions,
    console: Console
  ) throws {
    if case .btsnoop = radio {
      throw CommandFailure(
        .usage, "\(radio) is one recording, and it takes one for each position",
        hint: "put them into a folder and use --captures")
    }
    self.vehicle = vehicle
    self.radio = radio
    self.seconds = seconds
    self.interruption = interruption
    self.questions = questions
    self.console = console
    progress = console.progress
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
        // All that was measured so far would be lost.
        console.note(printable("\(error)"))
        guard try questions.confirm("try again?", suggestion: true) else { throw error }
        continue
      }
      let flaws = recording.flaws
      console.note("  \(CalibrationReport.columns(recording))")
      for flaw in flaws { console.note("  \(flaw)") }
      if flaws.isEmpty { return recording }
      let isFatal = flaws.contains(where: \.isFatal)
      let question = isFatal ? "repeat it, or else leave it out?" : "repeat it?"
      if try !questions.confirm(question, suggestion: isFatal) { return isFatal ? nil : recording }
    }
  }

  /// A radio is opened for each position, so that nothing is heard from the way there.
  private func listen(_ empty: PositionRecording) throws -> PositionRecording {
    let radio = try radio.open(interruption: interruption, tell: console.note)
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
