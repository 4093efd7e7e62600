import Domain
import NDEF
import StepProtocol
import Testing

@testable import Access

@Suite("The step that a tag or a code names") struct StepNameTests {
  static let uuid = "5f3c1c0e-7a0b-4f57-9a55-1f0f6c1b2a90"
  static let uri = "stepctl:\(uuid)/left?e=\(String(repeating: "0", count: 32))&c=\(String(repeating: "0", count: 16))"
  let left = Step(id: StepID("left")!, side: .left, major: 1)
  let right = Step(id: StepID("right")!, side: .right, major: 2)
  let car: Vehicle
  let label: String

  init() throws {
    car = try Vehicle(name: "Rolling Chassis", uuid: UUID(Self.uuid)!, steps: [left, right])
    label = StepLabel(vehicle: car.uuid, step: left.id).text
  }

  func tag(_ records: NDEFRecord...) throws -> StepName { try StepName(tag: NDEFMessage(records)) }
  func text(_ text: String) -> NDEFRecord { NDEFText(text).record }
  func uri(_ uri: String) -> NDEFRecord { NDEFURI(uri).record }

  @Test("a label and a dynamic tag name their step, and what was read is kept")
  func names() throws {
    let plain = try tag(text(label))
    #expect(try plain.step(in: car) == left)
    #expect(plain.content == label && !plain.isDynamic)
    #expect(plain.description == "the left step of \(Self.uuid)")
    let dynamic = try tag(uri(Self.uri))
    #expect(try dynamic.step(in: car) == left)
    #expect(dynamic.content == Self.uri && dynamic.isDynamic)
    #expect(try StepName(code: Array(label.utf8)) == plain)
    let numbered = try tag(text("{\"uuid\":\"\(Self.uuid)\",\"stepId\":2}"))
    #expect(try numbered.step(in: car) == right)
    #expect(numbered.description == "step 2 of \(Self.uuid)")
  }

  @Test("of a tag, the first record counts that is meant to name a step")
  func firstRecord() throws {
    #expect(try tag(uri("https://example.org"), text("Hello"), .empty, text(label), uri(Self.uri)).content == label)
    #expect(throws: StepName.Problem.namesNoStep) { try tag(uri("https://example.org"), text("Hello")) }
    #expect(throws: StepName.Problem.isEmpty) { try tag() }
    let right = "stepctl:\(Self.uuid)/right"
    #expect(throws: StepName.Problem.self) { try tag(text(label), text(right)) }
    #expect(throws: StepName.Problem.self) { try tag(uri(Self.uri), text(right)) }
    // A label may stand in a URI record as well; JSON in one and a dynamic tag's URI in a Text record are neither.
    #expect(try tag(uri(label)) == tag(text(label)))
    let json = "{\"uuid\":\"\(Self.uuid)\",\"stepId\":\"left\"}"
    #expect(throws: StepName.Problem.namesNoStep) { try tag(uri(json), text(Self.uri)) }
    let broken = StepName.Problem.malformed(
      "the URI of a dynamic tag that cannot be read: expected a vehicle's UUID in lower case, a slash and a step")
    #expect(throws: broken) { try tag(uri("stepctl:x?e="), text(label)) }
    #expect(
      throws: StepName.Problem.malformed(
        "a step's label that cannot be read: expected a vehicle's UUID in lower case, a slash and a step")
    ) { try tag(uri("stepctl:x"), text(label)) }
    #expect(throws: StepName.Problem.malformed("a step's label that cannot be read: stepId is missing")) {
      try tag(text("{\"uuid\":\"\(Self.uuid)\"}"))
    }
    let reserved = NDEFRecord(.wellKnown, type: Array("T".utf8), payload: [0x42, 0x65, 0x6E])
    #expect(throws: StepName.Problem.malformed("a malformed NDEF record: a text with a reserved bit")) {
      try tag(reserved)
    }
  }

  @Test("a code names a step by a label alone: in a code the URI of a dynamic tag is a copy")
  func codes() {
    for code in [Array(Self.uri.utf8), Array("Hello".utf8), [0xFF], []] {
      #expect(throws: StepName.Problem.namesNoStep) { try StepName(code: code) }
    }
  }

  @Test("another vehicle's step, and one that the vehicle does not have, are told apart")
  func otherVehicles() throws {
    let other = try Vehicle(name: "B\u{1B}us", uuid: .random(), steps: [left])
    let name = try tag(text(label))
    #expect(throws: StepName.Problem.otherVehicle(car.uuid, notOf: other.name)) { try name.step(in: other) }
    #expect(
      "\(StepName.Problem.otherVehicle(car.uuid, notOf: other.name))"
        == "is another vehicle's (\(Self.uuid)), not one of B\u{FFFD}us")
    let small = try Vehicle(name: "Small", uuid: car.uuid, steps: [right])
    for name in [name, try tag(uri(Self.uri))] {
      #expect(throws: StepName.Problem.noSuchStep(vehicle: "Small")) { try name.step(in: small) }
    }
    #expect("\(StepName.Problem.noSuchStep(vehicle: "Small"))" == "names a step that Small does not have")
  }
}
