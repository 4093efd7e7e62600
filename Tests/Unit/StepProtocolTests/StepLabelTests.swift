import Domain
import StepProtocol
import Testing

@Suite("Labels on steps") struct StepLabelTests {
  static let uuid = "5f3c1c0e-7a0b-4f57-9a55-1f0f6c1b2a90"
  let uuid = UUID(StepLabelTests.uuid)!
  let car: Vehicle

  init() throws {
    car = try Vehicle(
      name: "Car", uuid: uuid,
      steps: [
        Step(id: StepID("left")!, side: .left, major: 1), Step(id: StepID("7")!, side: .right, major: 2),
      ])
  }

  func step(_ text: String) throws -> String? {
    try StepLabel(parsing: text).step(in: car)?.id.description
  }

  @Test("are written in one form, and read back")
  func roundTrip() throws {
    let label = StepLabel(vehicle: uuid, step: StepID("left")!)
    #expect(label.text == "stepctl:\(Self.uuid)/left")
    #expect(try StepLabel(parsing: label.text) == label)
    // As they were written before.
    let former = #"{"uuid":"\#(Self.uuid)","stepId":"left"}"#
    #expect(try StepLabel(parsing: former) == label)
    let number = #"{"uuid":"\#(Self.uuid)","stepId":7}"#
    #expect(try StepLabel(parsing: number).text == number)
  }

  @Test("name a step by its id alone, where they are URIs")
  func uris() throws {
    #expect(try step("stepctl:\(Self.uuid)/left") == "left")
    #expect(try step("stepctl:\(Self.uuid)/7") == "7")
    // No major.
    #expect(try step("stepctl:\(Self.uuid)/1") == nil)
    #expect(try step("stepctl:00000000-0000-4000-8000-000000000000/left") == nil)
  }

  @Test(
    "a URI that is not in its form is refused",
    arguments: [
      "", "\(uuid)", "/left", "\(uuid)/", "\(uuid)/left/", "//\(uuid)/left", "\(uuid.uppercased())/left",
      "\(uuid)/Left", "\(uuid)/left ", " \(uuid)/left", "\(uuid)/left#", "\(uuid)/le%66t", "\(uuid)/left\0",
      "\(uuid)/le\u{301}ft", "\(uuid)/left\n", "\(uuid)/" + String(repeating: "a", count: 400),
    ])
  func malformedURI(rest: String) {
    do throws(StepLabel.ParsingError) {
      _ = try StepLabel(parsing: "stepctl:" + rest)
      Issue.record("read \(rest)")
    } catch {
      guard case .malformed = error else {
        Issue.record("\(error)")
        return
      }
    }
  }

  @Test("name a step by its id, and in the prototype's way by a number: an id, and else a major")
  func names() throws {
    #expect(try step(#"{"uuid":"\#(Self.uuid)","stepId":"left"}"#) == "left")
    #expect(try step(#" { "stepId" : "7" , "uuid" : "\#(Self.uuid.uppercased())" } "#) == "7")
    #expect(try step(#"{"uuid":"\#(Self.uuid)","stepId":1}"#) == "left")
    #expect(try step(#"{"uuid":"\#(Self.uuid)","stepId":2}"#) == "7")
    #expect(try step(#"{"uuid":"\#(Self.uuid)","stepId":7}"#) == "7")
    // A number as text is an id, and nothing else.
    for other in ["\"1\"", "\"right\"", "3", "0", "65535"] {
      #expect(try step(#"{"uuid":"\#(Self.uuid)","stepId":\#(other)}"#) == nil)
    }
    #expect(try step(#"{"uuid":"00000000-0000-4000-8000-000000000000","stepId":"left"}"#) == nil)
  }

  @Test(
    "something else is not one",
    arguments: [
      "", "left", "https://example.com", "7", "STEPCTL:\(StepLabelTests.uuid)/left",
      " stepctl:\(StepLabelTests.uuid)/left",
      "stepctl", "stepctl:\(StepLabelTests.uuid)/left?", "stepctl:\(StepLabelTests.uuid)/left?e=0&c=0",
      "stepctl:\(StepLabelTests.uuid)/" + String(repeating: "a", count: 500), "[]", "{}", #""left""#,
      #"{"name":"left"}"#, "null",
      #"{"uuid":"\#(StepLabelTests.uuid)","stepId":"left"}x"#, #"[{"uuid":"\#(StepLabelTests.uuid)","stepId":"left"}]"#,
      #"{"uuid":"\#(StepLabelTests.uuid)","uuid":"\#(StepLabelTests.uuid)","stepId":"left"}"#,
      #"{"uuid":"\#(StepLabelTests.uuid)","stepId":"left"}"# + String(repeating: " ", count: 512),
    ])
  func others(text: String) {
    #expect(throws: StepLabel.ParsingError.notLabel) { try StepLabel(parsing: text) }
  }

  @Test(
    "what is meant as one and is none says what is wrong with it",
    arguments: [
      (#"{"uuid":"\#(StepLabelTests.uuid)"}"#, "stepId is missing"),
      (#"{"stepId":"left"}"#, "uuid is missing"),
      (#"{"uuid":"x","stepId":"left"}"#, "uuid is not a UUID"),
      (
        #"{"uuid":"\#(StepLabelTests.uuid)","stepId":"Left"}"#,
        "stepId is not the id of a step, or a number from 0 to 65535"
      ),
      (
        #"{"uuid":"\#(StepLabelTests.uuid)","stepId":-1}"#,
        "stepId is not the id of a step, or a number from 0 to 65535"
      ),
      (
        #"{"uuid":"\#(StepLabelTests.uuid)","stepId":1.0}"#,
        "stepId is not the id of a step, or a number from 0 to 65535"
      ),
      (
        #"{"uuid":"\#(StepLabelTests.uuid)","stepId":"left","x":1}"#,
        "x is not a member that version 1 knows"
      ),
    ])
  func malformed(text: String, reason: String) {
    #expect(throws: StepLabel.ParsingError.malformed(reason)) { try StepLabel(parsing: text) }
  }
}
