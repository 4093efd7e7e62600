import ArgumentParser
import Encoding
import Foundation

struct Status: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Shows what each vehicle has told: where its steps are, who has it, and what it refused last.")
  @OptionGroup var server: ServerOption
  @Flag(help: "Print JSON.") var json = false

  func run() throws {
    let answer = try server.ask("GET", "/status")
    if json { return print(answer.text) }
    let rows = (answer["vehicles"]?.array ?? []).map { vehicle -> JSON in
      let steps = (vehicle["steps"]?.array ?? []).map { step in
        "\(step["id"]?.string ?? "?") \(step["position"]?.string.map(History.rest) ?? "-")"
          + (step["fault"]?.string.map { " (\($0))" } ?? "")
      }
      let booking = vehicle["booking"]?.string.map { String($0.prefix(8)) }
      return .object(
        (vehicle.object ?? []).filter { !["steps", "booking", "notice"].contains($0.name) } + [
          .init("notice", .string(Self.shown(vehicle["notice"]?.string))),
          .init("steps", .string(steps.joined(separator: ", "))), .init("booking", booking.map(JSON.string) ?? .null),
        ])
    }
    printTable(rows, ["name", "state", "steps", "booking", "heard", "notice", "refusal"])
  }

  private static func shown(_ notice: String?) -> String {
    switch notice {
    case "in_force": "in force"
    case "untold": "not sent"
    case "unconfirmed": "not confirmed"
    default: "-"
    }
  }
}

struct Support: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Says why somebody cannot open a step, as far as the server knows.",
    usage: "stepfleet support [<options>] <who>")
  @OptionGroup var server: ServerOption
  @Flag(help: "Print JSON.") var json = false
  @Argument(
    help: "An account's address, a booking's id or how that begins, or what a vehicle's log has: b-…, or a token's id.")
  var who: String

  func run() throws {
    let answer = try server.ask("POST", "/support", ["who": .string(who)])
    if json { return print(answer.text) }
    func text(_ json: JSON, _ name: String) -> String { json[name]?.string ?? "-" }
    print("\(text(answer, "email")): \(text(answer, "state"))")
    for booking in answer["bookings"]?.array ?? [] {
      print(
        "\(text(booking, "id").prefix(8))  \(text(booking, "name"))  \(text(booking, "from")) to \(text(booking, "to"))  "
          + text(booking, "state"))
    }
    for refusal in answer["refusals"]?.array ?? [] { print(History.line(refusal)) }
    for finding in answer["findings"]?.array ?? [] { print("- \(finding.string ?? "")") }
  }
}

struct History: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Shows what the vehicles did and refused.",
    usage: "stepfleet history [<options>]",
    discussion: """
      Vehicles sign what they report, and each report is kept once. What is wrong with the order of a vehicle's reports \
      is shown in brackets.
      """)
  @OptionGroup var server: ServerOption
  @Option(help: "Of this vehicle: its name or id.") var vehicle: String?
  @Option(help: "Of this booking: its id, or how that begins.") var booking: String?
  @Option(help: "Of this account: its address or id.") var account: String?
  @Option(help: ArgumentHelp("Heard since then, as 2026-11-30T22:00:00Z.", valueName: "time")) var since: String?
  @Option(help: "The newest so many.") var lines = 100
  @Flag(help: "Print JSON, an object for each event.") var json = false

  func run() throws {
    var query: [JSON.Member] = [.init("limit", .integer(Int64(lines)))]
    for (name, text) in [("vehicle", vehicle), ("booking", booking), ("account", account), ("since", since)] {
      if let text { query.append(.init(name, .string(text))) }
    }
    let events = try server.ask("POST", "/history", .object(query))["events"]?.array ?? []
    for event in events { print(json ? event.text : Self.line(event)) }
  }

  /// `2026-11-30T22:04:05Z  Van: left: open for 0f3a12bc anna@example.org (beacon, near)`
  static func line(_ event: JSON) -> String {
    func text(_ name: String) -> String? { event[name]?.string }
    let who = [text("booking").map { String($0.prefix(8)) }, text("email")].compactMap(\.self).joined(separator: " ")
    let rider = who.isEmpty ? text("token").map { "token \($0)" } ?? "nobody" : who
    let proof = [text("method"), text("zone")].compactMap(\.self).joined(separator: ", ")
    let cause = text("cause").map { " (\($0))" } ?? ""
    let (position, code) = (text("position") ?? "?", text("code") ?? "?")
    let what =
      switch text("kind") {
      case "started": "the controller has started"
      case "began" where text("token") == nil: "\(position), by the controller itself\(cause)"
      case "began": "\(position) for \(rider)\(proof.isEmpty ? "" : " (\(proof))")"
      case "ended": "is \(rest(position))\(text("code").map { "; fault: \($0)" } ?? "")"
      case "stopped": "stopped by \(rider)"
      case "refused":
        "refused \(rider): \(position == "unknown" ? "the status" : position): \(code)\(cause)"
          + (event["untold"]?.integer.map { "; \($0) more refusals before it have no event" } ?? "")
      case "fault": "fault: \(code)"
      case let kind: "\(kind ?? "?") \(text("code") ?? "")\(cause)"
      }
    let step = text("step").map { "\($0): " } ?? ""
    let finding = text("finding").map { " [\($0)]" } ?? ""
    return "\(text("time") ?? "")  \(text("vehicle") ?? text("id") ?? "?"): \(step)\(what)\(finding)"
  }

  static func rest(_ position: String) -> String {
    switch position {
    case "close": "closed"
    case "unknown": "between open and closed"
    default: position
    }
  }
}
