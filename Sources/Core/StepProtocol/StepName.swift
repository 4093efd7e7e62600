public import Domain
import Encoding
public import NDEF

/// The step that a tag or a code names. Both can hold a label; a tag can hold the URI of a dynamic tag instead.
public struct StepName: Hashable, Sendable {
  /// How the step is named.
  public enum Form: Hashable, Sendable {
    case label(StepLabel)
    case dynamicTag(DynamicTag)
  }

  /// Why a tag or a code does not tell which step the rider is at. The description follows the words `the tag` or `the
  /// code`.
  public enum Problem: Error, Equatable, CustomStringConvertible {
    case isEmpty
    case namesNoStep
    /// Meant as a step's name, but malformed.
    case malformed(String)
    case otherVehicle(UUID, notOf: String)
    case noSuchStep(vehicle: String)
    /// A tag with the names of several steps.
    case twoSteps(StepName, StepName)

    public var description: String {
      switch self {
      case .isEmpty: "is empty"
      case .namesNoStep: "holds something else than the name of a step"
      case .malformed(let reason): "holds \(reason)"
      case .otherVehicle(let uuid, let name): "is another vehicle's (\(uuid)), not one of \(printable(name))"
      case .twoSteps(let first, let second): "names both \(first) and \(second)"
      case .noSuchStep(let name): "names a step that \(printable(name)) does not have"
      }
    }
  }

  public let form: Form
  /// The text as it was read, for the proof.
  public let content: String

  /// Reads a QR code. Only labels are accepted: in a code, the URI of a dynamic tag is a copy.
  public init(code: [UInt8]) throws(Problem) {
    guard let text = String(validating: code, as: UTF8.self), let name = try StepName(text: text) else {
      throw .namesNoStep
    }
    self = name
  }

  /// Reads a tag: its first record that is meant to name a step.
  ///
  /// - Throws: `twoSteps` if a record behind it names another step, because such a tag does not tell where it is.
  public init(tag message: NDEFMessage) throws(Problem) {
    if message.isEmpty { throw .isEmpty }
    var found: StepName?
    for record in message.records {
      if let found {
        guard let other = try? StepName(record: record), !found.isSameStep(as: other) else { continue }
        throw .twoSteps(found, other)
      }
      found = try StepName(record: record)
    }
    guard let found else { throw .namesNoStep }
    self = found
  }

  /// Reads one record of a tag; nil if it is not meant to name a step.
  public init?(record: NDEFRecord) throws(Problem) {
    let text: String?
    let uri: String?
    do throws(NDEFError) {
      (text, uri) = (try NDEFText(record)?.text, try NDEFURI(record)?.uri)
    } catch {
      throw .malformed("a \(error)")
    }
    if let text {
      try self.init(text: text)
    } else if let uri, DynamicTag.isMeant(by: uri) {
      let tag: DynamicTag
      do throws(DynamicTag.ParsingError) { tag = try DynamicTag(parsing: uri) } catch {
        throw .malformed("\(error)")
      }
      self.init(.dynamicTag(tag), content: uri)
    } else if let uri, uri.utf8.starts(with: DynamicTag.scheme.utf8) {
      // Another program wrote the label as a URI record.
      try self.init(text: uri)
    } else {
      return nil
    }
  }

  /// Nil if the text is not meant as a label.
  private init?(text: String) throws(Problem) {
    let label: StepLabel
    do throws(StepLabel.ParsingError) { label = try StepLabel(parsing: text) } catch {
      if error == .notLabel { return nil }
      throw .malformed("\(error)")
    }
    self.init(.label(label), content: text)
  }

  private init(_ form: Form, content: String) {
    self.form = form
    self.content = content
  }

  public var vehicle: UUID {
    switch form {
    case .label(let label): label.vehicle
    case .dynamicTag(let tag): tag.vehicle
    }
  }

  /// Whether both can name the same step. An id and the prototype's number may be one step's; only the vehicle knows.
  private func isSameStep(as other: StepName) -> Bool {
    guard vehicle == other.vehicle else { return false }
    return if let id, let other = other.id { id == other } else { id != other.id || content == other.content }
  }

  /// Nil for a number.
  private var id: StepID? {
    switch form {
    case .dynamicTag(let tag): tag.step
    case .label(let label): if case .id(let id) = label.step { id } else { nil }
    }
  }

  /// Whether the content is new at each reading, so that a copy is worth little.
  public var isDynamic: Bool { if case .dynamicTag = form { true } else { false } }

  /// The named step, if it belongs to this vehicle.
  public func step(in vehicle: Vehicle) throws(Problem) -> Step {
    guard self.vehicle == vehicle.uuid else { throw .otherVehicle(self.vehicle, notOf: vehicle.name) }
    let step =
      switch form {
      case .label(let label): label.step(in: vehicle)
      case .dynamicTag(let tag): vehicle.step(tag.step)
      }
    guard let step else { throw .noSuchStep(vehicle: vehicle.name) }
    return step
  }
}

extension StepName: CustomStringConvertible {
  /// `the right step of 5f3c1c0e-7a0b-4f57-9a55-1f0f6c1b2a90`
  public var description: String {
    switch form {
    case .dynamicTag(let tag): "the \(tag.step) step of \(tag.vehicle)"
    case .label(let label):
      switch label.step {
      case .id(let id): "the \(id) step of \(label.vehicle)"
      case .number(let number): "step \(number) of \(label.vehicle)"
      }
    }
  }
}
