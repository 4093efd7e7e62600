import Booking
import Domain
import Encoding
import HTTPTypes
import Hummingbird
import Store
import Testing
import Web

@testable import API

@Suite struct WatchTests {
  @Test(arguments: [
    (FleetRefusal.tooShort, 422, "too_short"), (.keyReused, 422, "key_reused"), (.otherDevice, 422, "bad_request"),
    (.badRequest("damaged"), 422, "bad_request"), (.noSuchStep(StepID("roof")!), 422, "no_such_step"),
    (.badName, 400, "malformed"), (.sameSteps, 400, "malformed"), (.badApplication("damaged"), 400, "malformed"),
    (.suspended, 401, "unauthorized"), (.badCode, 403, "bad_code"), (.noSuchVehicle, 404, "not_found"),
    (.notNamed("vehicle", "a", near: nil), 404, "not_found"), (.severalVehicles("a"), 409, "ambiguous"),
    (.takenUntil(0), 409, "taken"),
    (.noSuchBooking, 404, "not_found"), (.over, 409, "over"), (.active, 409, "active"), (.notBegun, 409, "not_begun"),
    (.tooManyBookings(1), 409, "too_many_bookings"), (.outOfService, 409, "unavailable"), (.nameTaken, 409, "taken"),
    (.vehicleTaken, 409, "taken"), (.topicTaken, 409, "taken"), (.otherName("car"), 409, "other_name"),
    (.deviceRevoked, 409, "device_revoked"), (.changedMeanwhile, 409, "changed"), (.changed, 412, "changed"),
    (.taken(next: []), 409, "taken"), (.tooEarly(from: 0), 409, "too_early"),
    (.tooMuchAccess(until: 0), 409, "too_many_access"),
  ])
  func `a refusal has a status`(_ refusal: FleetRefusal, _ status: Int, _ code: String) {
    let problem = Problem(refusal)
    #expect(problem.status.code == status && problem.code == code && problem.detail == refusal.description)
  }

  @Test func `a refusal tells programs when it would be none`() {
    let next = Problem(FleetRefusal.taken(next: [Interval(0, 60)]))
    #expect(next.members == [.init("next", [["from": "1970-01-01T00:00:00Z", "to": "1970-01-01T00:01:00Z"]])])
    for refusal in [FleetRefusal.tooEarly(from: 60), .tooMuchAccess(until: 60)] {
      #expect(Problem(refusal).members == [.init("from", "1970-01-01T00:01:00Z")])
    }
    #expect(Problem(FleetRefusal.suspended).headers[.wwwAuthenticate] == #"DPoP algs="EdDSA Ed25519""#)
  }

  private struct Unknown: Error {}

  @Test func `other errors are told without a reason`() {
    #expect(Problem(Problem.failed as any Error) == .failed)
    #expect(Problem(Unknown() as any Error) == .failed)
    #expect(Problem(StoreError.statement("SELECT") as any Error) == .failed)
    #expect(Problem(StoreError.unconfirmed("lost") as any Error) == .failed)
    #expect(Problem(OperatorFailure.admission).detail == "no vehicle can join at present")
    #expect(Problem(OperatorFailure.access).headers[.retryAfter] == "5")
    #expect(Problem(OperatorFailure.keys("why")) == Problem(.conflict, "keys", "why"))
    let busy = Problem.busy("the database cannot be used at present", seconds: 5)
    #expect(Problem(StoreError.unavailable("/srv/fleet: full") as any Error) == busy)
    #expect(Problem(StoreError.disturbed as any Error) == busy)
    #expect(Problem(HTTPError(.contentTooLarge) as any Error).code == "too_large")
    #expect(Problem(HTTPError(.badRequest) as any Error).code == "malformed")
    #expect(Problem(HTTPError(.notFound) as any Error).detail == "no such path")
  }

  private func router(_ metrics: Metrics, _ error: any Error) -> Router<FleetContext> {
    let router = Router(context: FleetContext.self)
    router.add(middleware: Watch(metrics))
    router.get("/fails") { _, _ -> Response in throw error }
    return router
  }

  @Test func `a failure of the server is an error in its log, and a refusal is none`() async throws {
    let bench = try await Bench()
    let failed = try await bench.ask(.get, "/fails", router: router(Metrics(), StoreError.unavailable("/srv: full")))
    #expect(failed.status == 503 && failed.headers[.retryAfter] == "5" && !failed.text.contains("/srv"))
    #expect(bench.log.text.contains("error: failed error=the database cannot be used: /srv: full"))
    let log = bench.log.text.split(separator: "\n").filter { $0.hasPrefix("error") }.count
    for error in [Problem.busy("later"), FleetRefusal.outOfService, OperatorFailure.access] as [any Error] {
      _ = try await bench.ask(.get, "/fails", router: router(Metrics(), error))
    }
    #expect(bench.log.text.split(separator: "\n").filter { $0.hasPrefix("error") }.count == log)
  }

  @Test func `requests are counted by their routes, and unknown paths are not written down`() async throws {
    let bench = try await Bench()
    let counted = Metrics()
    let router = bench.router(metrics: counted)
    for path in ["/healthz", "/healthz", "/nowhere/at/all", "/v1/bookings/1"] {
      _ = try await bench.ask(.get, path, router: router)
    }
    // They are the operator's.
    #expect(try await bench.ask(.get, "/metrics", router: router).status == 404)
    let metrics = try await bench.ask(.get, "/metrics", router: bench.router(isOperators: true, metrics: counted))
    #expect(metrics.headers[.contentType] == "text/plain; version=0.0.4")
    #expect(metrics.text.contains(#"stepfleet_request_seconds_count{method="GET",route="/healthz",status="200"} 2"#))
    #expect(metrics.text.contains(#"route="NotFound",status="404""#) && !metrics.text.contains("nowhere"))
    #expect(bench.log.text.contains("request method=GET") && bench.log.text.contains("route=/v1/bookings/{id}"))
    #expect(metrics.headers[.strictTransportSecurity] == "max-age=31536000")
    #expect(metrics.headers[.xContentTypeOptions] == "nosniff")
  }

  @Test func `what the operator has to know of access is told`() async throws {
    let bench = try await Bench()
    func value(_ name: String) async throws -> String? {
      let text = try await bench.command(.get, "/metrics").text
      #expect(text.contains("# TYPE stepfleet_\(name) gauge\n"))
      return text.split(separator: "\n").first { $0.hasPrefix("stepfleet_\(name) ") }?.split(separator: " ").last.map(
        String.init)
    }
    _ = try await bench.ride(TestDevice())
    #expect(try await value("live_tokens") == "1")
    #expect(try await value("untold_notices") == "0")
    #expect(try await value("untold_notices_oldest_seconds") == "0")
    try await bench.service.publishToAll()
    bench.wait(40)
    #expect(try await value("untold_notices") == "2")
    #expect(try await value("untold_notices_oldest_seconds") == "40")
    // The server ended before it took back what the account has.
    try await bench.run("UPDATE account SET state = 'suspended'")
    #expect(try await value("unrevoked_tokens") == "1")
    try await bench.service.tidy()
    #expect(try await value("live_tokens") == "0")
    #expect(try await value("unrevoked_tokens") == "0")
  }

  @Test func `numbers of one name are told under one heading`() {
    let gauges = ["a", "b"].map { Gauge("days", "Days.", 1, label: ("holder", $0)) } + [Gauge("other", "Other.", -2)]
    #expect(
      Gauge.text(of: gauges) == """
        # HELP stepfleet_days Days.
        # TYPE stepfleet_days gauge
        stepfleet_days{holder="a"} 1
        stepfleet_days{holder="b"} 1
        # HELP stepfleet_other Other.
        # TYPE stepfleet_other gauge
        stepfleet_other -2

        """)
  }

  @Test func `a path has one slash between its parts`() async throws {
    let bench = try await Bench()
    for path in ["//healthz", "/v1//bookings", "///healthz", "/v1/vehicles//"] {
      let answer = try await bench.ask(.get, path)
      #expect(answer.status == 404 && answer.code == "not_found", "\(path)")
    }
    #expect(try await bench.ask(.get, "/healthz?a=//").status == 200)
  }

  @Test func `a request is counted below each time that it did not take`() {
    let metrics = Metrics()
    metrics.count("GET", "/a", 200, .milliseconds(2))
    metrics.count("GET", "/a", 200, .seconds(3))
    let text = metrics.text
    for (bound, count) in [("0.001", 0), ("0.0025", 1), ("2.5", 1), ("5.0", 2), ("+Inf", 2)] {
      #expect(text.contains("route=\"/a\",status=\"200\",le=\"\(bound)\"} \(count)\n"), "\(bound)")
    }
    #expect(text.contains("_sum{method=\"GET\",route=\"/a\",status=\"200\"} 3.002\n"))
  }

  @Test func `a method that a path has not is told from a path that is not`() async throws {
    let bench = try await Bench()
    let router = bench.router()
    for (path, method, allowed) in [
      ("/healthz", HTTPRequest.Method.post, "GET, HEAD"), ("/v1/bookings/0/cancel", .get, "POST"),
      ("/v1/bookings/0", .put, "GET, HEAD, PATCH"),
    ] {
      let answer = try await bench.ask(method, path, router: router)
      #expect(answer.status == 405 && answer.headers[.allow] == allowed && answer.code == "method", "\(path)")
    }
    #expect(try await bench.ask(.post, "/nothing", router: router).status == 404)
  }
}

@Suite struct FormTests {
  @Test(arguments: ["\"1\"", "\"922\""])
  func `a tag of a version is read`(_ text: String) {
    #expect(EntityTag(text)?.version != nil)
    #expect(EntityTag(version: EntityTag(text)!.version!).text == text)
  }

  @Test(arguments: ["", "\"", "1", "W/\"1\"", "\"1", "1\""])
  func `what is no strong tag is none`(_ text: String) { #expect(EntityTag(text) == nil) }

  @Test(arguments: ["\"01\"", "\"+1\"", "\"\"", "\"a\""])
  func `a tag that is no version's names none`(_ text: String) { #expect(EntityTag(text)?.version == nil) }

  @Test func `a list of tags is read`() {
    #expect(EntityTag.list("*") == nil)
    #expect(EntityTag.list("\"1\",W/\"2\",\t\"3\" ") == [EntityTag(version: 1), EntityTag(version: 3)])
    #expect(BookingChange.Precondition(ifMatch: "*") == .any)
    #expect(BookingChange.Precondition(ifMatch: "\"1\", \"x\"") == .versions([1]))
  }

  @Test func `the tag of a content changes with it`() {
    #expect(EntityTag(of: "a") == EntityTag(of: "a") && EntityTag(of: "a") != EntityTag(of: "b"))
    #expect(EntityTag(of: "a").text.count == 18)
  }

  @Test func `a booking is read as it was written`() async throws {
    let form = try await Bench().book("car", 1, 3)
    #expect(try BookingForm(parsing: form.json.text) == form)
    for damaged in ["{}", #"{"id": "1"}"#] {
      #expect(throws: BookingForm.Damaged.self) { try BookingForm(parsing: damaged) }
    }
  }

  @Test func `steps are read as they are written`() {
    #expect([Step](json: PlayedIssuer.steps.json) == PlayedIssuer.steps)
    let step: JSON = ["id": "left", "side": "left", "major": 1]
    let bad: [JSON] = [
      [], "left", [["id": "left", "side": "left"]], [["id": "left", "side": "top", "major": 1]],
      [["id": "left", "side": "left", "major": 65_536]], .array(Array(repeating: step, count: 17)),
    ]
    for json in bad { #expect([Step](json: json) == nil, "\(json)") }
  }

  @Test func `a text's digest is its SHA-256`() {
    #expect(digest("abc".utf8) == "BA7816BF8F01CFEA414140DE5DAE2223B00361A396177A9CB410FF61F20015AD")
    #expect(Repeatable(key: "k", body: Array("abc".utf8)).digest == digest("abc".utf8))
  }
}
