import Encoding
import HTTPTypes
import Hummingbird
import NIOCore
import Testing
import Web

@Suite struct BodyTests {
  private func request(_ text: String, type: String? = "application/json", length: Int? = nil) -> Request {
    var headers = HTTPFields()
    headers[.contentType] = type
    headers[.contentLength] = length.map { "\($0)" }
    return Request(
      head: .init(method: .post, scheme: "https", authority: "a", path: "/", headerFields: headers),
      body: .init(buffer: ByteBuffer(string: text)))
  }

  @Test func `members are read by name, and null counts as missing`() async throws {
    let body = try await Body(
      of: request(#"{"name": "car", "at": "2027-03-01T09:30:00Z", "none": null}"#), members: ["name", "at", "none"])
    #expect(try body.string("name") == "car")
    #expect(try body.time("at") == 1_803_893_400)
    #expect(body["none"] == nil)
    #expect(try body.optionalString("none") == nil)
    #expect(throws: Problem.malformed("none is missing")) { try body.string("none") }
    #expect(throws: Problem.malformed("name is a time as in 2027-03-01T09:30:00Z")) { try body.time("name") }
    #expect(throws: Problem.malformed("name is a text of 1 to 2 bytes")) { try body.string("name", limit: 2) }
  }

  @Test(arguments: [
    ("[]", "the body is no JSON object"), (#"{"form": 1}"#, "the body has a member that is not known: form"),
  ])
  func `another body is refused`(_ text: String, _ reason: String) async {
    await #expect(throws: Problem.malformed(reason)) { try await Body(of: request(text), members: ["from"]) }
  }

  @Test func `a body of another type or size is refused`() async throws {
    let type = await problem(request("{}", type: "text/plain"))
    #expect(type?.status == .unsupportedMediaType)
    let large = String(repeating: " ", count: FleetContext.maximumBody + 1)
    #expect(await problem(request(large))?.status == .contentTooLarge)
    #expect(await problem(request("", length: FleetContext.maximumBody + 1))?.status == .contentTooLarge)
    // Spaces before a parameter's semicolon mean nothing.
    _ = try await Body(of: request("{}", type: "Application/JSON ; charset=utf-8"), members: ["from"])
    // Where no member is allowed, no body is needed.
    _ = try await Body(of: request("", type: nil), members: [])
  }

  private func problem(_ request: Request) async -> Problem? {
    do {
      _ = try await Body(of: request, members: ["from"])
      return nil
    } catch { return error as? Problem }
  }

  @Test func `a problem is written for people and for programs`() {
    let problem = Problem(.conflict, "taken", "another booking has that time", members: [.init("next", [])])
    #expect(
      problem.json == [
        "type": "about:blank", "title": "Conflict", "status": 409, "detail": "another booking has that time",
        "code": "taken", "next": [],
      ])
    #expect(Problem.busy("later", seconds: 5).headers[.retryAfter] == "5")
  }
}
