import ArgumentParser
import CommandParts
import Domain
import Encoding
import Operator
import Rider
import StepProtocol
import Terminal

struct OperatorLog: ContextCommand {
  static let configuration = CommandConfiguration(
    commandName: "log", abstract: "Fetch and show what the vehicles did and refused.",
    usage: "stepctl operator log [<options>] <dir> [<vehicle>]")

  @OptionGroup var place: PlaceOptions

  @Argument(help: ArgumentHelp("The vehicle: its name, UUID or folder (default: all).", valueName: "vehicle"))
  var vehicle: String?

  @Flag(name: .shortAndLong, help: "Keep going, and show each event as it comes.")
  var follow = false

  @Flag(help: "Ask no vehicle; only check signatures and order of the events that are here.")
  var verify = false

  @Option(help: ArgumentHelp("How many of the stored events to show first.", valueName: "count"))
  var lines = 100

  @OptionGroup var timeout: TimeoutOptions
  @OptionGroup var output: OutputOptions

  func validate() throws {
    guard !follow || !verify else { throw ValidationError("--follow and --verify exclude each other.") }
    guard (0...1_000_000).contains(lines) else { throw ValidationError("--lines takes 0 to 1000000.") }
  }

  func run(in context: Context) throws {
    let console = output.console(context)
    let operatorPlace = try place.place
    let folders = try operatorPlace.vehicles(named: vehicle)
    let riders = try operatorPlace.ledger().tokens.reduce(into: [String: String]()) { $0[$1.id] = $1.rider }
    let report = EventReport(riders: riders, showsVehicle: folders.count > 1, console: console)
    if verify { return try check(folders, operatorPlace, console, report) }
    for (line, vehicle) in try stored(folders, operatorPlace) { try report.show(line, of: vehicle) }
    let patience = try context.settings(timeout: timeout.typed).patience
    let reader = try EventReader(
      operatorPlace, folders, now: { context.seconds },
      report: { new in
        switch new {
        case .event(let line, let vehicle): try report.show(line, of: vehicle)
        case .finding(let finding, let vehicle): try report.show(finding, of: vehicle)
        case .foreign(let error, let vehicle):
          console.note("ignored a message that is not an event of \(printable(vehicle.name)): \(error)")
        case .disconnected(let reason): console.note("\(reason); trying again")
        }
      })
    try reader.run(patience: patience, follows: follow, until: context.interruption())
  }

  /// The last stored events, in the order of the vehicles' clocks.
  private func stored(
    _ folders: [VehicleFolder], _ place: OperatorPlace
  ) throws -> [(SignedEvent, Vehicle)] {
    var all: [(SignedEvent, Vehicle)] = []
    for folder in folders {
      let vehicle = try folder.vehicle()
      var last: [SignedEvent] = []
      try place.archive(of: vehicle.uuid).read { line in
        last.append(line)
        if last.count >= 2 * max(lines, 500) { last.removeFirst(last.count - lines) }
      }
      all += last.suffix(lines).map { ($0, vehicle) }
    }
    // The events of a single vehicle keep their order, whatever its clock showed.
    return (folders.count == 1 ? all : all.sorted { $0.0.event.content.time < $1.0.event.content.time }).suffix(lines)
  }

  private func check(
    _ folders: [VehicleFolder], _ place: OperatorPlace, _ console: Console, _ report: EventReport
  ) throws {
    var broken = 0
    for folder in folders {
      let (vehicle, controller) = (try folder.vehicle(), try folder.controllerKey())
      var chain = EventChain()
      var findings = 0
      try place.archive(of: vehicle.uuid).read(verifiedBy: controller) { line in
        let found: [EventChain.Finding]
        switch chain.take(line.event, line.digest) {
        case .known: found = []
        case .follows(let some): found = some
        case .waits: found = chain.accept(line.event, line.digest)
        }
        for finding in found { try report.show(finding, of: vehicle) }
        findings += found.count
      }
      broken += findings
      try console.isJSON
        ? console.result([
          "vehicle": .string(vehicle.uuid.description), "events": .integer(Int64(chain.count)),
          "findings": .integer(Int64(findings)),
        ])
        : console.result(
          "\(printable(vehicle.name)): \(chain.count) events, \(findings == 0 ? "whole and in order" : "not whole")")
    }
    guard broken == 0 else { throw EventError.broken(broken) }
  }
}

/// Events as people and programs read them.
private struct EventReport {
  /// The riders' names, found by their tokens.
  let riders: [String: String]
  let showsVehicle: Bool
  let console: Console

  func show(_ line: SignedEvent, of vehicle: Vehicle) throws {
    let content = line.event.content
    if console.isJSON { return try console.result(json(line, vehicle)) }
    // Each fetch leaves such an event behind.
    if content.kind == .notice { return console.detail("\(begin(content, vehicle))\(text(content))") }
    try console.result("\(begin(content, vehicle))\(text(content))")
  }

  func show(_ finding: EventChain.Finding, of vehicle: Vehicle) throws {
    if console.isJSON {
      return try console.result(["vehicle": .string(vehicle.uuid.description), "finding": finding.json])
    }
    console.note("\(printable(vehicle.name)): \(finding.text)")
  }

  private func begin(_ content: VehicleEvent.Content, _ vehicle: Vehicle) -> String {
    let name = showsVehicle ? "\(printable(vehicle.name)): " : ""
    return "\(dateAndTime(content.time))  \(name)\(content.step.map { "\($0): " } ?? "")"
  }

  private func text(_ content: VehicleEvent.Content) -> String {
    let rider = content.token.map { printable(riders[$0] ?? "token \($0)") } ?? "nobody"
    let cause = content.cause.map { " (\($0))" } ?? ""
    let proof = [content.method, content.zone].compactMap(\.self).joined(separator: ", ")
    let asked = content.position?.rawValue ?? "?"
    switch content.kind {
    case .started: return "the controller has started"
    case .began:
      if content.token == nil { return "\(asked), by the controller itself\(cause)" }
      return "\(asked) for \(rider)\(proof.isEmpty ? "" : " (\(proof))")"
    case .ended:
      let state = content.position.flatMap { Position(rawValue: $0.rawValue) }?.state ?? "unknown"
      return "is \(state)\(content.code.map { "; fault: \($0)" } ?? "")"
    case .stopped: return "stopped by \(rider)"
    case .refused:
      let more = content.untold.map { "; \($0) more refusals before it have no event" } ?? ""
      let shown = asked == "unknown" ? "the status" : asked
      return "refused \(rider): \(shown): \(content.code ?? "?")\(cause)\(more)"
    case .fault: return "fault: \(content.code ?? "?")"
    case .notice: return "the notice \(content.notice ?? 0) is in force"
    case .other(let word): return ([word] + [content.code].compactMap(\.self)).joined(separator: " ") + cause
    }
  }

  private func json(_ line: SignedEvent, _ vehicle: Vehicle) -> JSON {
    let content = line.event.content
    func optional(_ text: String?) -> JSON { text.map { .string($0) } ?? .null }
    return [
      "vehicle": .string(vehicle.uuid.description), "seq": .integer(line.event.sequence),
      "hash": .string(line.digest.text), "time": .integer(content.time), "kind": .string(content.kind.rawValue),
      "step": optional(content.step?.description), "position": optional(content.position?.rawValue),
      "token": optional(content.token), "rider": optional(content.token.flatMap { riders[$0] }),
      "code": optional(content.code), "cause": optional(content.cause), "method": optional(content.method),
      "zone": optional(content.zone), "untold": content.untold.map { .integer($0) } ?? .null,
      "notice": content.notice.map { .integer($0) } ?? .null, "place": content.place?.json ?? .null,
    ]
  }
}

extension ReportedPlace {
  fileprivate var json: JSON {
    [
      "latitude": .rounded(latitude, places: 7), "longitude": .rounded(longitude, places: 7),
      "error_m": .rounded(Double(error) / 10, places: 1), "age_s": .integer(age),
    ]
  }
}

extension EventChain.Finding {
  fileprivate var json: JSON {
    switch self {
    case .unwritten(let range):
      ["kind": "unwritten", "from": .integer(range.lowerBound), "to": .integer(range.upperBound)]
    case .missing(let range):
      ["kind": "missing", "from": .integer(range.lowerBound), "to": .integer(range.upperBound)]
    case .wentBack(let to, let from): ["kind": "went_back", "from": .integer(from), "to": .integer(to)]
    case .beganAgain(let last): ["kind": "began_again", "from": .integer(last), "to": 0]
    }
  }
}
