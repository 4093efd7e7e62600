public import Domain
import Encoding

/// The label of a step, written as the Text record of an NFC tag or as a QR code:
///
///     stepctl:5f3c1c0e-7a0b-4f57-9a55-1f0f6c1b2a90/left
///
/// A telephone shows this text as it is, and a program may register for the scheme. A web address instead would send
/// telephones to a page that does not exist. Older labels are JSON, which is read as well:
/// `{"uuid":"…","stepId":"left"}`.
///
/// A label names the step and proves nothing by itself: anyone who has seen it can copy it.
public struct StepLabel: Hashable, Sendable {
  public let vehicle: UUID
  public let step: Name

  /// How a label names a step.
  public enum Name: Hashable, Sendable {
    case id(StepID)
    /// The prototype's labels number the steps.
    case number(UInt16)
  }

  public init(vehicle: UUID, step: StepID) {
    self.vehicle = vehicle
    self.step = .id(step)
  }

  /// Why a text is not a step's label.
  public enum ParsingError: Error, Equatable, CustomStringConvertible {
    /// Something else: another text or another JSON object.
    case notLabel
    /// Meant as a label, but malformed.
    case malformed(String)

    public var description: String {
      switch self {
      case .notLabel: "not a step's label"
      case .malformed(let reason): "a step's label that cannot be read: \(reason)"
      }
    }
  }

  /// Reads the content of a tag or a code.
  public init(parsing text: String) throws(ParsingError) {
    guard text.utf8.starts(with: DynamicTag.scheme.utf8) else {
      try self.init(json: text)
      return
    }
    // A copy of a dynamic tag's content is not a label.
    guard text.utf8.count <= Proof.maximumContent, !DynamicTag.isMeant(by: text) else { throw .notLabel }
    let path: StepPath
    do throws(StepPath.Flaw) { path = try StepPath(text.utf8.dropFirst(DynamicTag.scheme.utf8.count)) } catch {
      throw .malformed(error.reason)
    }
    self.init(vehicle: path.vehicle, step: path.step)
  }

  /// Reads JSON. A UUID may be in either case, as the prototype's are.
  private init(json text: String) throws(ParsingError) {
    guard text.utf8.count <= Proof.maximumContent, let value = try? JSON(parsing: text.utf8, maximumDepth: 2),
      value["uuid"] != nil || value["stepId"] != nil
    else { throw .notLabel }
    do throws(ProtocolError) {
      var members = try ObjectReader(value, of: "the label", isExtensible: false)
      vehicle = try members.take("uuid", "a UUID") { $0.string.flatMap { UUID($0) } }
      step = try members.take("stepId", "the id of a step, or a number from 0 to 65535", Name.init)
      try members.end()
    } catch {
      guard case .malformed(let reason) = error else { throw .notLabel }
      throw .malformed(reason)
    }
  }

  /// The content to write, in one canonical form. It is JSON if the step has a number.
  public var text: String {
    switch step {
    case .id(let id): "\(DynamicTag.scheme)\(vehicle)/\(id)"
    case .number(let number):
      (["uuid": .string(vehicle.description), "stepId": .integer(Int64(number))] as JSON).text
    }
  }

  /// The step that the label names; nil if it names no step of this vehicle.
  ///
  /// A number means the step with that id, or else the step with that major.
  public func step(in vehicle: Vehicle) -> Step? {
    guard vehicle.uuid == self.vehicle else { return nil }
    switch step {
    case .id(let id): return vehicle.step(id)
    case .number(let number): return StepID(String(number)).flatMap(vehicle.step) ?? vehicle.step(major: number)
    }
  }
}

extension StepLabel.Name {
  fileprivate init?(_ value: JSON) {
    switch value {
    case .string(let text):
      guard let id = StepID(text) else { return nil }
      self = .id(id)
    case .integer(let value):
      guard let number = UInt16(exactly: value) else { return nil }
      self = .number(number)
    default: return nil
    }
  }
}

/// A vehicle and one of its steps, as labels and the URIs of dynamic tags name them: `5f3c1c0e-…/left`.
struct StepPath {
  let vehicle: UUID
  let step: StepID

  struct Flaw: Error {
    let reason: String
  }

  init(_ text: Substring.UTF8View) throws(Flaw) {
    let names = text.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false).map {
      String(decoding: $0, as: UTF8.self)
    }
    // Each vehicle has one spelling, so the UUID is in lower case.
    guard names.count == 2, let vehicle = UUID(names[0]), identical(vehicle.description, names[0]) else {
      throw Flaw(reason: "expected a vehicle's UUID in lower case, a slash and a step")
    }
    guard let step = StepID(names[1]) else { throw Flaw(reason: "the step is not a step's id") }
    (self.vehicle, self.step) = (vehicle, step)
  }
}
