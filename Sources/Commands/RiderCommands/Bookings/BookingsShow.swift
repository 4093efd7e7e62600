import ArgumentParser
import CommandParts
import Domain
import Encoding
import Geography
import Rider
import Terminal

struct BookingsShow: ContextCommand {
  static let configuration = CommandConfiguration(
    commandName: "show", abstract: "Show a booking, and what its vehicle did.",
    usage: "stepctl bookings show [<options>] [<id>]")

  @OptionGroup var which: BookingOptions
  @OptionGroup var output: OutputOptions

  func run(in context: Context) throws {
    let client = try context.fleet(context.interruption())
    let console = output.console(context)
    let booking = try which.booking(client)
    let events = try client.events(of: booking)
    if console.isJSON {
      return try console.result(
        .object(
          (booking.report().object ?? [])
            + [.init("events", events.map { .array($0.map(\.json)) } ?? .null)]))
    }
    try booking.print(console)
    for (time, text) in BookingEvent.lines(of: events ?? []) {
      try console.result("\(dateTimeAndSecond(time))  \(text)")
    }
  }
}

extension BookingEvent {
  /// A line for each event. A motion that came to its target is one line.
  static func lines(of events: [BookingEvent]) -> [(time: Int64, text: String)] {
    var lines: [(time: Int64, text: String)] = []
    var rest = events[...]
    while let event = rest.popFirst() {
      var text = event.text
      if event.kind == "began", let next = rest.first, next.kind == "ended", next.step == event.step,
        next.position == event.position, next.code == nil
      {
        text = event.motion("opened", "closed")
        if next.time > event.time { text += ", \(next.time - event.time) s" }
        text += next.standing
        rest.removeFirst()
      }
      lines.append((event.time, text))
    }
    return lines
  }

  /// Where the vehicle stood: five decimals are a metre.
  private var standing: String {
    guard let place else { return "" }
    return " (\(JSON.rounded(place.latitude, places: 5).text), \(JSON.rounded(place.longitude, places: 5).text))"
  }

  private var name: String { step.map { "\($0) " } ?? "" }

  private func motion(_ open: String, _ close: String) -> String {
    "\(name)\(position == "close" ? close : open)\(method.map { " by \($0)" } ?? "")"
  }

  private var text: String {
    let reason = code.map { ": \($0)\(cause.map { " (\($0))" } ?? "")" } ?? ""
    return switch kind {
    case "began": motion("began to open", "began to close")
    case "ended":
      name + (position == "close" ? "is closed" : position == "open" ? "is open" : "is between open and closed")
        + reason + standing
    case "stopped": "\(name)stopped"
    case "refused":
      name + (position.map { $0 == "unknown" ? "refused the status" : "refused to \($0)" } ?? "refused") + reason
    case let kind: "\(name)\(kind)\(reason)"
    }
  }
}
