import ArgumentParser
import Encoding
import Foundation

struct Status: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Shows what each vehicle has told: where its steps are, who has it, and what it refused last.")
  @OptionGroup var server: ServerOption
  @Flag(help: "Print JSON.") var json = false
  @Flag(help: "Show it again every two seconds, until Control-C; with --json, each time that it changes.") var watch =
    false

  func validate() throws {
    guard !watch || json || isatty(STDOUT_FILENO) == 1 else {
      throw ValidationError("--watch draws on a terminal; elsewhere, add --json")
    }
  }

  func run() throws {
    let answer = try ask()
    if watch { return try follow(answer) }
    if json { return print(answer.text) }
    for line in Self.lines(answer) { print(line) }
  }

  private func ask() throws -> JSON { try server.ask("GET", "/status") }

  /// Shows it again and again. If the server is away, what it said last stays, and since when that is.
  private func follow(_ first: JSON) throws {
    var (answer, time, obstacle) = (first, Date(), ServerError?.none)
    var printed: JSON?
    while true {
      if json {
        if answer != printed { FileHandle.standardOutput.write(Data((answer.text + "\n").utf8)) }
        printed = answer
      } else {
        draw(answer, at: time, obstacle)
      }
      Thread.sleep(forTimeInterval: 2)
      // Nothing may change for hours, and whoever reads may have gone.
      guard !Self.isReaderGone else { return }
      let hadObstacle = obstacle != nil
      do {
        (answer, time, obstacle) = (try ask(), Date(), nil)
      } catch let error as ServerError { obstacle = error }
      if json, hadObstacle != (obstacle != nil) {
        let text = obstacle.map { "\($0); trying again" } ?? "connected again"
        FileHandle.standardError.write(Data("\(text)\n".utf8))
      }
    }
  }

  /// Whether nobody reads standard output any more (poll(2), POLLERR).
  private static var isReaderGone: Bool {
    var output = pollfd(fd: STDOUT_FILENO, events: 0, revents: 0)
    return poll(&output, 1, 0) > 0 && output.revents & Int16(POLLERR) != 0
  }

  /// Draws from the terminal's first line on, as much as has room.
  private func draw(_ answer: JSON, at time: Date, _ obstacle: ServerError?) {
    var size = winsize()
    let isKnown = ioctl(STDOUT_FILENO, UInt(TIOCGWINSZ), &size) == 0 && size.ws_row > 2 && size.ws_col > 0
    let (rows, columns) = isKnown ? (Int(size.ws_row), Int(size.ws_col)) : (24, 80)
    var last = "as of \(Timestamp.text(Int64(time.timeIntervalSince1970)))"
    if let obstacle { last += ", no connection for \(Int(Date().timeIntervalSince(time))) s: \(obstacle)" }
    let all = Self.lines(answer)
    var lines = Array(all.prefix(rows - 2))
    if lines.count < all.count { lines[lines.count - 1] = "… and \(all.count - lines.count + 1) more" }
    let text = (lines + [last]).map { "\($0.prefix(columns))\u{1B}[K" }.joined(separator: "\n")
    FileHandle.standardOutput.write(Data("\u{1B}[H\(text)\n\u{1B}[J".utf8))
  }

  /// A line for each vehicle, and below it what is out of the ordinary.
  private static func lines(_ answer: JSON) -> [String] {
    let vehicles = answer["vehicles"]?.array ?? []
    let rows = vehicles.map { vehicle -> JSON in
      let name = vehicle["name"]?.string ?? "?"
      return [
        "name": .string(name.count > 20 ? "\(name.prefix(19))…" : name),
        "state": .string(shownState(vehicle["state"]?.string ?? "?")),
        "steps": .string(steps(vehicle)),
        "booking": vehicle["booking"]?.string.map { .string(String($0.prefix(8))) } ?? .null,
        "there": .string(there(vehicle)),
      ]
    }
    let table = tableLines(rows, ["name", "state", "steps", "booking", "there"])
    var lines = Array(table.prefix(1))
    if let since = answer["broker_away_since"]?.string {
      lines.insert("the broker is away for \(age(since)): what vehicles do is not heard", at: 0)
    }
    for (line, vehicle) in zip(table.dropFirst(), vehicles) {
      lines.append(line)
      let notes = notes(vehicle)
      if !notes.isEmpty { lines.append("    \(printable(notes.joined(separator: "; ")))") }
    }
    return lines
  }

  private static func steps(_ vehicle: JSON) -> String {
    let steps = vehicle["steps"]?.array ?? []
    if steps.allSatisfy({ $0["position"]?.string == "close" && $0["fault"]?.string == nil }) { return "closed" }
    if steps.allSatisfy({ $0["position"]?.string == nil }) { return "-" }
    return steps.map { step in
      "\(step["id"]?.string ?? "?") \(step["position"]?.string.map(History.rest) ?? "-")"
        + (step["fault"]?.string.map { " (\($0))" } ?? "")
    }.joined(separator: ", ")
  }

  /// Whether a vehicle's controller is there, or since when it is silent.
  private static func there(_ vehicle: JSON) -> String {
    let heard = vehicle["heard"]?.string
    switch vehicle["online"]?.bool {
    case true?: return heard.map { "yes, heard \(age($0)) ago" } ?? "yes"
    case false?: return "silent \(age(vehicle["online_since"]?.string ?? heard))"
    case nil: return heard.map { "heard \(age($0)) ago" } ?? "never heard"
    }
  }

  private static func notes(_ vehicle: JSON) -> [String] {
    var notes: [String] = []
    switch vehicle["notice"]?.string {
    case "untold":
      let since = vehicle["untold_since"]?.string.map { " for \(age($0))" } ?? ""
      notes.append("notice not sent\(since)")
    case "unconfirmed": notes.append("notice not confirmed")
    default: break
    }
    if let end = vehicle["certificate_ends"]?.string.flatMap(Timestamp.read) {
      let left = end - Int64(Date().timeIntervalSince1970)
      if left < 30 * 86_400 {
        notes.append(left < 0 ? "its certificate has ended" : "its certificate ends in \(left / 86_400) days")
      }
    }
    if let refusal = vehicle["refusal"]?.string {
      notes.append("last refusal \(refusal), \(age(vehicle["refused"]?.string)) ago")
    }
    if let stands = stands(vehicle) { notes.append("stands \(stands)") }
    return notes
  }

  /// How long ago that was, by the clock of this computer: the server's.
  private static func age(_ time: String?) -> String {
    guard let time = time.flatMap(Timestamp.read) else { return "-" }
    return switch max(0, Int64(Date().timeIntervalSince1970) - time) {
    case let seconds where seconds < 120: "\(seconds) s"
    case let seconds where seconds < 7200: "\(seconds / 60) min"
    case let seconds where seconds < 172_800: "\(seconds / 3600) h"
    case let seconds: "\(seconds / 86_400) d"
    }
  }

  /// Where a vehicle stands, by the nearest parking zone if there is one, and how old that is.
  private static func stands(_ vehicle: JSON) -> String? {
    guard let latitude = vehicle["place"]?["latitude"]?.text, let longitude = vehicle["place"]?["longitude"]?.text
    else {
      return nil
    }
    var place = "at \(latitude),\(longitude)"
    if let zone = vehicle["parking"]?["zone"]?.string, let metres = vehicle["parking"]?["metres"]?.integer {
      place = metres == 0 ? "in \(zone)" : "\(metres) m from \(zone)"
    }
    return "\(place), \(age(vehicle["placed_at"]?.string)) ago"
  }
}

struct Support: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Says why somebody cannot open a step, as far as the server knows.",
    usage: "stepfleet support [<options>] <who>")
  @OptionGroup var server: ServerOption
  @Flag(help: "Take the booking's access back, so that the rider's program fetches it anew.") var reissue = false
  @Flag(help: "Print JSON.") var json = false
  @Argument(
    help: "An account's address, a booking's id or how that begins, or what a vehicle's log has: b-…, or a token's id.")
  var who: String

  func run() throws {
    let answer = try server.ask("POST", "/support", ["who": .string(who), "reissue": .bool(reissue)])
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
    if let booking = answer["reissued"]?.string {
      print("the access of \(booking.prefix(8)) is made new: the rider types `stepctl open` again")
    }
  }
}

struct Statistics: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Shows how vehicles were used, by month (UTC): bookings, hours, openings, refusals by cause.")
  @OptionGroup var server: ServerOption
  @Option(help: ArgumentHelp("From that month on, as 2026-01; else the last twelve.", valueName: "month"))
  var since: String?
  @Flag(help: "Print JSON, an object for each month and vehicle.") var json = false
  @Flag(help: "Print CSV (RFC 4180).") var csv = false

  func validate() throws {
    guard !(json && csv) else { throw ValidationError("give one of --json and --csv") }
    guard let since else { return }
    guard let begin = Timestamp.read("\(since)-01T00:00:00Z") else {
      throw ValidationError("--since: a month is as 2026-11")
    }
    guard begin <= Int64(Date().timeIntervalSince1970) else { throw ValidationError("--since: \(since) has not begun") }
  }

  func run() throws {
    let time = since.map { JSON.string("\($0)-01T00:00:00Z") }
    let months = try server.ask("POST", "/statistics", ["since": time ?? .null])["months"]?.array ?? []
    if json {
      for month in months { print(month.text) }
      return
    }
    let rows = months.map { month -> JSON in
      let refusals = (month["refusals"]?.object ?? []).map { "\($0.name) \($0.value.text)" }
      return .object(
        (month.object ?? []).filter { $0.name != "refusals" } + [
          .init("refusals", .string(refusals.joined(separator: ", ")))
        ])
    }
    let columns = ["month", "vehicle", "bookings", "hours", "openings", "refusals"]
    csv ? printCSV(rows, columns) : printTable(rows, columns)
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
  @Option(
    help: ArgumentHelp(
      "Heard since then: 2026-11-30T22:00:00Z, 2026-11-30 or 22:00 (UTC), or so long ago: 90m, 2h, 3d.",
      valueName: "time"))
  var since: String?
  @Option(help: "The newest so many, 10,000 at most.") var lines = 100
  @Flag(help: "Print JSON, an object for each event.") var json = false
  @Flag(help: "Print CSV (RFC 4180).") var csv = false

  func validate() throws {
    guard !(json && csv) else { throw ValidationError("give one of --json and --csv") }
    guard (1...10_000).contains(lines) else { throw ValidationError("--lines takes 1 to 10000.") }
    if let since, Self.time(since, now: Int64(Date().timeIntervalSince1970)) == nil {
      throw ValidationError(
        "--since \(since): a time is 2026-11-30T22:00:00Z, 2026-11-30 or 22:00 (UTC), or so long ago: 90m, 2h, 3d")
    }
  }

  /// The time that somebody has typed, as the server reads it.
  static func time(_ typed: String, now: Int64) -> String? {
    if Timestamp.read(typed) != nil { return typed }
    let day = Timestamp.text(now).prefix(10)
    let minute = typed.hasSuffix("Z") ? "\(typed.dropLast()):00Z" : "\(typed):00Z"
    for text in ["\(typed)T00:00:00Z", minute, "\(typed)Z", "\(day)T\(typed):00Z"] {
      guard let time = Timestamp.read(text.replacing(" ", with: "T")) else { continue }
      // A time of day that is still to come was yesterday's.
      return Timestamp.text(text.hasPrefix(day) && time > now && typed.utf8.count == 5 ? time - 86_400 : time)
    }
    let units: [Character: Int64] = ["m": 60, "h": 3600, "d": 86_400]
    guard let unit = typed.last.flatMap({ units[$0] }), let count = Int64(typed.dropLast()),
      (1...100_000).contains(count)
    else { return nil }
    return Timestamp.text(now - count * unit)
  }

  func run() throws {
    var query: [JSON.Member] = [.init("limit", .integer(Int64(lines)))]
    let since = since.flatMap { Self.time($0, now: Int64(Date().timeIntervalSince1970)) }
    for (name, text) in [("vehicle", vehicle), ("booking", booking), ("account", account), ("since", since)] {
      if let text { query.append(.init(name, .string(text))) }
    }
    let events = try server.ask("POST", "/history", .object(query))["events"]?.array ?? []
    if csv { return printCSV(events.map(Self.flat), Self.columns) }
    for event in events { print(json ? event.text : Self.line(event)) }
  }

  private static let columns = [
    "time", "heard", "vehicle", "id", "seq", "kind", "step", "position", "code", "cause", "method", "zone", "untold",
    "token", "booking", "email", "finding", "latitude", "longitude", "error_m",
  ]

  /// With the place's degrees as members of the event.
  private static func flat(_ event: JSON) -> JSON {
    .object((event.object ?? []).filter { $0.name != "place" } + (event["place"]?.object ?? []))
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
      case "ended": "is \(rest(position))\(text("code").map { "; fault: \($0)" } ?? "")\(standing(event["place"]))"
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

  private static func standing(_ place: JSON?) -> String {
    guard let latitude = place?["latitude"]?.text, let longitude = place?["longitude"]?.text else { return "" }
    return " (\(latitude), \(longitude))"
  }

  static func rest(_ position: String) -> String {
    switch position {
    case "close": "closed"
    case "unknown": "between open and closed"
    default: position
    }
  }
}
