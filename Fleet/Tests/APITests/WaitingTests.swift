import Booking
import Encoding
import FleetTestSupport
import Geography
import HTTPTypes
import StepProtocol
import Testing

@testable import API

@Suite struct WaitingTests {
  /// Runs the body while changes are told.
  private func told(_ engine: Engine = .memory, _ body: (Bench) async throws -> Void) async throws {
    let bench = try await Bench(engine)
    let telling = Task { await bench.service.followAnnouncements() }
    // A change from before is not told.
    while bench.service.changes.round == 0 {
      bench.service.changes.note(nil)
      await Task.yield()
    }
    try await body(bench)
    telling.cancel()
  }

  /// A request of whoever has that answer, and will wait.
  private func waiting(_ bench: Bench, _ path: String, _ tag: String?, by caller: String = "ada phone", wait: Int = 20)
    async throws -> Bench.Answer
  {
    var headers: HTTPFields = [.prefer: "wait=\(wait)"]
    headers[.ifNoneMatch] = tag
    return try await bench.ask(.get, path, by: caller, headers: headers)
  }

  @Test(arguments: Engine.forRules)
  func `the answer comes when the list changes`(_ engine: Engine) async throws {
    try await told(engine) { bench in
      let first = try await waiting(bench, "/v1/vehicles", nil)
      let tag = try #require(first.headers[.eTag])
      #expect(first.status == 200 && first.json["vehicles"]?.array?.count == 2)
      async let next = waiting(bench, "/v1/vehicles", tag)
      try await bench.untilWaiting(1)
      try await bench.book("car", 0, 1)
      let answer = try await next
      #expect(answer.status == 200 && answer.headers[.preferenceApplied] == "wait=20")
      #expect(answer.json["vehicles"]?.array?.first?["state"] == "reserved")
      #expect(answer.headers[.eTag] != tag && bench.service.changes.waiting == 0)
      // It is what everybody reads.
      #expect(try await bench.ask(.get, "/v1/vehicles").text == answer.text)
    }
  }

  @Test func `without a change the answer says so after the wait`() async throws {
    try await told { bench in
      let tag = try await waiting(bench, "/v1/vehicles", nil).headers[.eTag]
      let answer = try await waiting(bench, "/v1/vehicles", tag, wait: 1)
      #expect(answer.status == 304 && answer.text.isEmpty && answer.headers[.eTag] == tag)
      #expect(answer.headers[.preferenceApplied] == "wait=1")
      // Who does not say that it waits, or has no tag, gets its answer at once, and no such word.
      let bookings = try await bench.ask(.get, "/v1/bookings")
      let again = try await bench.ask(.get, "/v1/bookings", headers: [.ifNoneMatch: bookings.headers[.eTag]!])
      #expect(again.status == 304 && again.headers[.preferenceApplied] == nil)
      #expect(try await bench.ask(.get, "/v1/vehicles").headers[.preferenceApplied] == nil)
    }
  }

  @Test func `a change of a later page is a change of the first one's tag`() async throws {
    try await told { bench in
      let first = try await waiting(bench, "/v1/vehicles?limit=1", nil)
      async let next = waiting(bench, "/v1/vehicles?limit=1", first.headers[.eTag])
      try await bench.untilWaiting(1)
      try await bench.book("van", 0, 1)
      let answer = try await next
      #expect(answer.status == 200 && answer.text == first.text && answer.headers[.eTag] != first.headers[.eTag])
    }
  }

  @Test func `another account's booking does not wake who waits for its own`() async throws {
    try await told { bench in
      let tag = try await waiting(bench, "/v1/bookings", nil).headers[.eTag]
      async let ada = waiting(bench, "/v1/bookings", tag)
      async let bob = waiting(bench, "/v1/bookings", tag, by: "bob phone", wait: 1)
      try await bench.untilWaiting(2)
      let made = try await bench.book("car", 0, 1)
      #expect(try await ada.json["bookings"]?.array?.first?["id"] == .string(made.id))
      #expect(try await bob.status == 304 && bench.service.changes.told == 1)
    }
  }

  @Test func `one vehicle is waited for`() async throws {
    try await told { bench in
      let path = "/v1/vehicles/\(try await bench.id(of: "car"))"
      let tag = try await bench.ask(.get, path).headers[.eTag]
      async let next = waiting(bench, path, tag)
      try await bench.untilWaiting(1)
      // Another vehicle's booking wakes nobody, however long ago.
      try await bench.book("van", 0, 1)
      try await Task.sleep(for: .milliseconds(300))
      #expect(bench.service.changes.told == 0)
      try await bench.service.setPlace(Coordinate(latitude: 1, longitude: 2)!, of: "car")
      let place = try await next.json["place"]
      #expect(place?["latitude"] == .number(1), "\(String(describing: place))")
    }
  }

  @Test func `what time changes is told in time`() async throws {
    try await told { bench in
      let made = try await bench.book("car", 10 / 3600.0, 1)
      let tags = try await [waiting(bench, "/v1/vehicles", nil), waiting(bench, "/v1/bookings", nil)].map {
        $0.headers[.eTag]
      }
      bench.wait(9)
      async let vehicles = waiting(bench, "/v1/vehicles", tags[0])
      async let bookings = waiting(bench, "/v1/bookings", tags[1], wait: 2)
      try await bench.untilWaiting(2)
      bench.wait(1)
      #expect(try await vehicles.json["vehicles"]?.array?.first?["state"] == "reserved")
      // It has begun, and nobody has asked for access: its state is the same.
      #expect(try await bookings.status == 304)
      #expect(made.state == .booked)
    }
  }

  @Test func `who was suspended meanwhile is told nothing`() async throws {
    try await told { bench in
      let tag = try await waiting(bench, "/v1/vehicles", nil).headers[.eTag]
      async let next = waiting(bench, "/v1/vehicles", tag)
      try await bench.untilWaiting(1)
      try await bench.run("UPDATE account SET state = 'suspended' WHERE id = 'ada'")
      try await bench.service.setPlace(Coordinate(latitude: 1, longitude: 2)!, of: "car")
      let answer = try await next
      #expect(answer.status == 401 && !answer.text.contains("place"))
    }
  }

  @Test func `where a vehicle is that somebody uses is told to that one alone`() async throws {
    try await told { bench in
      try await bench.service.setPlace(Coordinate(latitude: 1, longitude: 2)!, of: "car")
      let tag = try await waiting(bench, "/v1/vehicles", nil).headers[.eTag]
      async let ada = waiting(bench, "/v1/vehicles", tag)
      async let bob = waiting(bench, "/v1/vehicles", tag, by: "bob phone")
      try await bench.untilWaiting(2)
      let made = try await bench.book("car", 0, 1)
      _ = try await (ada, bob)
      let tags = try await (waiting(bench, "/v1/vehicles", nil), waiting(bench, "/v1/vehicles", nil, by: "bob phone"))
      async let adaNext = waiting(bench, "/v1/vehicles", tags.0.headers[.eTag])
      async let bobNext = waiting(bench, "/v1/vehicles", tags.1.headers[.eTag], by: "bob phone")
      try await bench.untilWaiting(2)
      let phone = TestDevice()
      _ = try await bench.service.access(to: made.id, for: phone.caller("ada"), phone.request(at: bench.now))
      #expect(try await adaNext.json["vehicles"]?.array?.first?["place"] != nil)
      let seen = try await bobNext.json["vehicles"]?.array?.first
      #expect(seen?["place"] == nil && seen?["state"] == "on_trip")
    }
  }

  @Test func `what nobody waited for meanwhile is a change all the same`() async throws {
    try await told { bench in
      let tag = try await waiting(bench, "/v1/vehicles", nil).headers[.eTag]
      async let first = waiting(bench, "/v1/vehicles", tag)
      try await bench.untilWaiting(1)
      try await bench.book("van", 0, 1)
      _ = try await first
      // Nobody waits now.
      let made = try await bench.book("car", 1 / 3600.0, 1)
      bench.wait(1)
      try await Task.sleep(for: .milliseconds(300))
      let reserved = try await waiting(bench, "/v1/vehicles", nil)
      #expect(reserved.json["vehicles"]?.array?.first?["state"] == "reserved")
      async let next = waiting(bench, "/v1/vehicles", reserved.headers[.eTag], wait: 20)
      try await bench.untilWaiting(1)
      let begun = ContinuousClock.now
      _ = try await bench.service.change(made.id, of: "ada", .cancel)
      #expect(try await next.json["vehicles"]?.array?.first?["state"] == "available")
      #expect(ContinuousClock.now - begun < .seconds(10))
    }
  }

  @Test func `a place is seen again when access has ended, after the booking`() async throws {
    try await told { bench in
      let made = try await bench.book("car", 0, 1)
      let phone = TestDevice()
      _ = try await bench.service.access(to: made.id, for: phone.caller("ada"), phone.request(at: bench.now))
      try await bench.service.setPlace(Coordinate(latitude: 1, longitude: 2)!, of: "car")
      bench.wait(3600)
      try await bench.service.tidy()
      // What has changed so far is told before: nothing but the time wakes the request.
      try await Task.sleep(for: .milliseconds(600))
      let hidden = try await waiting(bench, "/v1/vehicles", nil, by: "bob phone")
      #expect(hidden.json["vehicles"]?.array?.first?["place"] == nil)
      bench.wait(BookingRules.grace - 1)
      async let next = waiting(bench, "/v1/vehicles", hidden.headers[.eTag], by: "bob phone")
      try await bench.untilWaiting(1)
      bench.wait(1)
      let begun = ContinuousClock.now
      #expect(try await next.json["vehicles"]?.array?.first?["place"] != nil)
      // At that moment, and not when the request has waited long enough.
      #expect(ContinuousClock.now - begun < .seconds(10))
    }
  }

  @Test func `a tag that a proxy has made weak is known, and times are not waited for`() async throws {
    try await told { bench in
      let tag = try #require(try await waiting(bench, "/v1/vehicles", nil).headers[.eTag])
      #expect(try await waiting(bench, "/v1/vehicles", "W/\(tag)", wait: 0).status == 304)
      let asked = bench.interval(1, 2)
      let timed = try await waiting(bench, "/v1/vehicles?from=\(asked.from)&to=\(asked.to)", tag)
      #expect(timed.status == 200 && timed.headers[.preferenceApplied] == nil && timed.headers[.eTag] == nil)
    }
  }

  @Test func `an account has few that wait, and a server that stops has none`() async throws {
    try await told { bench in
      let tag = try await waiting(bench, "/v1/vehicles", nil).headers[.eTag]
      try await withThrowingTaskGroup(of: Bench.Answer.self) { group in
        for _ in 0..<Changes.mostOfAccount { group.addTask { try await waiting(bench, "/v1/vehicles", tag) } }
        try await bench.untilWaiting(Changes.mostOfAccount)
        let further = try await waiting(bench, "/v1/vehicles", tag)
        #expect(further.status == 304 && further.headers[.preferenceApplied] == nil)
        bench.service.endWaiting()
        for try await answer in group { #expect(answer.status == 304) }
      }
      let late = try await waiting(bench, "/v1/vehicles", tag)
      #expect(late.status == 304 && late.headers[.preferenceApplied] == nil)
    }
  }

  @Test(
    arguments: [
      ("wait=25", 25), ("wait=0", 0), ("wait=3600", 25), ("wait=99999999999999999999", 25), ("Wait = 3", 3),
      ("respond-async, wait=\"7\"", 7), ("wait=5; x=1, wait=9", 5), ("wait", nil), ("wait=", nil), ("wait=-1", nil),
      ("wait=1.5", nil), ("wait=½", nil), ("return=minimal", nil), ("", nil),
    ] as [(String, Int?)])
  func `a preference is read`(_ text: String, _ seconds: Int?) {
    #expect(Preference.wait(in: [.prefer: text]) == seconds)
  }
}

extension Bench {
  /// Waits until so many requests wait for a change.
  func untilWaiting(_ count: Int) async throws {
    let end = ContinuousClock.now + .seconds(30)
    while service.changes.waiting < count {
      try #require(ContinuousClock.now < end, "\(service.changes.waiting) of \(count) wait")
      try await Task.sleep(for: .milliseconds(5))
    }
  }
}
