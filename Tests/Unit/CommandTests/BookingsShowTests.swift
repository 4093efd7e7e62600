import Encoding
import Testing

@testable import Rider
@testable import RiderCommands

@Suite("The course of a booking") struct BookingsShowTests {
  private func event(_ kind: String, _ second: Int, _ members: [(String, String)] = []) throws -> BookingEvent {
    let json: [JSON.Member] = [
      .init("time", .string("2026-11-23T08:00:0\(second)Z")), .init("kind", .string(kind)), .init("step", "left"),
    ]
    return try BookingEvent(.object(json + members.map { .init($0.0, .string($0.1)) }), from: "a")
  }

  @Test("a motion that came to its target is one line, and one that did not says so")
  func lines() throws {
    let open = [("position", "open")]
    let began = try event("began", 1, open + [("method", "beacon")])
    for (events, expected) in [
      ([began, try event("ended", 3, open)], ["left opened by beacon, 2 s"]),
      ([began, try event("ended", 1, open)], ["left opened by beacon"]),
      (
        [began, try event("ended", 3, [("position", "unknown"), ("code", "obstructed")])],
        ["left began to open by beacon", "left is between open and closed: obstructed"]
      ),
      ([began], ["left began to open by beacon"]),
      (
        [try event("refused", 1, open + [("code", "not_near"), ("cause", "zone")])],
        ["left refused to open: not_near (zone)"]
      ),
      (
        [try event("refused", 1, [("position", "unknown"), ("code", "expired")])], ["left refused the status: expired"]
      ),
      ([try event("ended", 1, [("position", "close")]), try event("later", 2)], ["left is closed", "left later"]),
    ] {
      #expect(BookingEvent.lines(of: events).map(\.text) == expected)
    }
  }
}
