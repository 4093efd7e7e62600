import Bluetooth
import Domain
import Evaluation
import Ranging
import Rider
import SystemIO
import Terminal

/// Captures, each with its position from the positions file.
struct Survey {
  private let vehicle: Vehicle
  private var captures: [(path: String, step: Step, position: SurveyedPosition)] = []
  /// Positions in the file that have no capture.
  private let unused: Int
  private let file: String

  /// - Throws: if a capture has no position, two captures share one, or the vehicle has no step at its side.
  init(_ paths: [String], positions file: String, of vehicle: Vehicle) throws {
    self.vehicle = vehicle
    self.file = file
    let positions: [SurveyedPosition]
    let bytes = try Files.readRegular(file)
    do throws(PositionsFile.Flaw) { positions = try PositionsFile.read(bytes) } catch {
      throw CommandFailure(.badData, "\(file):\(error.line): \(error.message)")
    }
    var taken: [Int: String] = [:]
    for typed in paths {
      // The form that --radio takes is accepted too.
      let path = typed.hasPrefix("btsnoop:") ? String(typed.dropFirst("btsnoop:".count)) : typed
      guard path != "-" else {
        throw CommandFailure(
          .usage, "a capture is a file here, because the positions name it", hint: "save standard input to a file")
      }
      let meant = positions.indices.filter { Self.names(positions[$0].capture, path) }
      guard let index = meant.first else {
        throw CommandFailure(
          Files.exists(path) ? .badData : .noInput,
          Files.exists(path) ? "\(path) is not in \(file)" : "there is no capture \(path)",
          hint: Files.exists(path) ? "add a line that says where it was taken, or leave it out" : nil)
      }
      let position = positions[index]
      if meant.count > 1 {
        throw CommandFailure(
          .badData, "\(file):\(positions[meant[1]].line): capture: \(path) is named in line \(position.line) already")
      }
      if let other = taken.updateValue(path, forKey: index) {
        throw CommandFailure(
          .usage,
          other == path
            ? "\(path) is given twice" : "\(other) and \(path) are both what \(file) names in line \(position.line)",
          hint: other == path ? "give it once" : "name them there with their folders")
      }
      guard let step = vehicle.step(at: position.side) else {
        throw CommandFailure(
          .badData, "\(file):\(position.line): side: \(vehicle.name) has no step at the \(position.side.rawValue) side")
      }
      captures.append((path, step, position))
    }
    // In the file's order, not in the shell's.
    captures.sort { $0.position.line < $1.position.line }
    unused = positions.count - taken.count
  }

  /// Whether a name in the file is a capture's path, or the end of it, with or without the extension.
  private static func names(_ name: String, _ path: String) -> Bool {
    func isEnd(of path: Substring) -> Bool { path == name || path.hasSuffix("/\(name)") }
    let file = Files.name(of: path)
    return isEnd(of: path[...])
      || file.lastIndex(of: ".").map { isEnd(of: path.dropLast(file[$0...].count)) } ?? false
  }

  /// Reads every capture, and decides twice a second like `locate --watch`.
  func evaluated(_ interruption: Interruption, _ console: Console) throws -> SiteEvaluation {
    if unused > 0 {
      console.note("\(unused) of the positions in \(file) \(unused == 1 ? "has" : "have") no capture here")
    }
    var evaluations: [PositionEvaluation] = []
    defer { console.progress.clear() }
    for (index, capture) in captures.enumerated() {
      console.progress.show("reading \(capture.path) (\(index + 1) of \(captures.count))")
      let evaluation = try evaluate(capture, interruption, console)
      if let same = evaluations.firstIndex(where: { $0.fingerprint == evaluation.fingerprint }) {
        throw CommandFailure(
          .badData, "\(captures[same].path) and \(capture.path) are the same capture",
          hint: "leave one out: it would count twice")
      }
      evaluations.append(evaluation)
    }
    return SiteEvaluation(evaluations, of: vehicle)
  }

  private func evaluate(
    _ capture: (path: String, step: Step, position: SurveyedPosition), _ interruption: Interruption, _ console: Console
  ) throws -> PositionEvaluation {
    var evaluation = PositionEvaluation(capture.position, capture.step, of: vehicle)
    let radio = RadioSpec.btsnoop(capture.path)
    let opened = try radio.open(interruption: interruption)
    defer { opened.close() }
    var others: Set<UUID> = []
    while case .heard(let advertisement) = try opened.next(until: nil) {
      for beacon in advertisement.iBeacons {
        if beacon.uuid == vehicle.uuid {
          evaluation.hear(beacon, rssi: advertisement.rssi, at: advertisement.time)
        } else {
          others.insert(beacon.uuid)
        }
      }
    }
    guard evaluation.frames > 0 else {
      let found = if others.count == 1, let other = others.first { "it has those of \(other): " } else { "" }
      throw CommandFailure(
        .badData, "\(capture.path): no frame of \(vehicle.name) is in it",
        hint: "\(found)name the vehicle that was recorded with --vehicle, or leave the capture out")
    }
    try BeaconSearch(vehicle, radio: radio, limit: nil).follow(interruption, tell: console.note) { location, _ in
      evaluation.take(location)
      return !interruption.isPending
    }
    if interruption.isPending { throw Interrupted() }
    return evaluation
  }
}
