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
    #expect(label.text == #"{"uuid":"\#(Self.uuid)","stepId":"left"}"#)
    #expect(try StepLabel(parsing: label.text) == label)
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
      "", "left", "https://example.com", "7", "[]", "{}", #""left""#, #"{"name":"left"}"#, "null",
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
