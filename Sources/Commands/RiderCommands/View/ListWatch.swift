import CommandParts
import Domain
import Encoding
import Glibc
import HTTP
import Rider
import SystemIO
import Terminal

/// Shows a list of the server each time that it changes, until the user ends it.
///
/// If the server is away, the list stays, with how old it is.
struct ListWatch<Item: Sendable & Equatable> {
  /// The list's name in JSON.
  let name: String
  /// Reads the list; if it is known, when it has changed, or after a while.
  let read: (_ known: FollowedList<Item>?) throws -> FollowedList<Item>
  let lines: ([Item]) -> [String]
  let json: ([Item]) -> [JSON]

  /// Seconds until the next attempt: the first time, and at most. An answer that did not wait for a change is followed
  /// by the longest pause, too.
  private static var pauses: (first: Int64, longest: Int64) { (1, 15) }

  func run(_ client: FleetClient, _ context: Context, _ console: Console) throws -> Never {
    let view = LiveView(context, console)
    defer { view?.close() }
    var known = try read(nil)
    /// When the last answer came, since when there is none, and how long the next attempt waits.
    var (time, lost, pause) = (context.seconds, Int64?.none, Self.pauses.first)
    func show() throws {
      // Nothing may change for hours.
      if console.isReaderGone { throw Interrupted(signal: SIGPIPE) }
      try view.map { try draw(known.items, time, lost, on: $0, context, console) }
    }
    func wait(_ seconds: Int64) throws {
      for _ in 0..<seconds {
        try show()
        try client.world.pause(.seconds(1))
      }
    }
    try print(known.items, time, unless: view != nil, console)
    var ended: (any Error)?
    client.meanwhile = {
      do { try show() } catch { ended = error }
      return ended == nil
    }
    defer { client.meanwhile = nil }
    while true {
      do {
        try show()
        let old = known
        // After an obstacle the answer comes at once: until then nobody knows that the server is back.
        known = try read(lost == nil ? old : nil)
        if lost != nil { note("connected again", unless: view != nil, console) }
        (time, lost, pause) = (context.seconds, nil, Self.pauses.first)
        if known.items != old.items { try print(known.items, time, unless: view != nil, console) }
        // Whatever a server says of waiting, it is not asked without end.
        try wait(known.isAwaited ? Self.pauses.first : Self.pauses.longest)
      } catch let error as any Failure where error.exitStatus == .unavailable && !error.isInterruption {
        if lost == nil {
          note("\(printable(error.description)); trying again", unless: view != nil, console)
          // A server that answers nothing may have been away since it was asked.
          let isSilent = if case .http(.timedOut)? = error as? FleetError { true } else { false }
          lost = isSilent ? time : context.seconds
        }
        try wait(pause)
        pause = min(pause * 2, Self.pauses.longest)
      } catch {
        throw ended ?? error
      }
    }
  }

  private func note(_ line: String, unless isDrawn: Bool, _ console: Console) {
    if !isDrawn { console.note(line) }
  }

  private func print(_ items: [Item], _ time: Int64, unless isDrawn: Bool, _ console: Console) throws {
    if console.isJSON {
      let members = [JSON.Member("as_of", .string(Timestamp.text(time))), .init(name, .array(json(items)))]
      return try console.result(.object(members))
    }
    if isDrawn { return }
    try console.result("as of \(dateTimeAndSecond(time))")
    for line in lines(items) { try console.result("  \(line)") }
  }

  private func draw(
    _ items: [Item], _ time: Int64, _ lost: Int64?, on view: LiveView, _ context: Context, _ console: Console
  ) throws {
    let lines = lines(items)
    var state = "as of \(dateTimeAndSecond(time).suffix(8))"
    if let lost { state += ", no connection for \(span(max(context.seconds - lost, 0)))" }
    try view.show(last: lines + [state]) { size in
      func fit(_ text: String) -> String { view.glyphs.text(text, in: max(size.columns - 1, 1)) }
      let room = max(size.rows - 2, 0)
      var shown = Array(lines.prefix(room))
      if shown.count < lines.count, !shown.isEmpty { shown[shown.count - 1] = "and \(lines.count - room + 1) more" }
      return
        (shown.map(fit) + [
          console.styled(fit(state), lost == nil ? .dim : .bad), console.styled(fit("Control-C ends"), .dim),
        ]).suffix(size.rows)
    }
  }
}
