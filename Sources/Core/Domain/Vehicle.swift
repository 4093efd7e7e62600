/// One extendable step of a vehicle.
public struct Step: Hashable, Sendable {
  public let id: StepID
  public let side: Side
  /// The `major` of the step's iBeacon.
  public let major: UInt16
  /// The RSSI at 1 m measured on this vehicle, dBm. If it is nil, the value in the beacon's frames counts.
  public var measuredPower: Int8?
  /// The `minor` of the step's iBeacon if it is fixed; nil if it is unknown or rotates.
  public var minor: UInt16?
  /// The NFC tags on the step. If the list is empty, any tag that names the step is accepted.
  public var tags: [TagUID]

  public init(
    id: StepID, side: Side, major: UInt16, measuredPower: Int8? = nil, minor: UInt16? = nil, tags: [TagUID] = []
  ) {
    self.id = id
    self.side = side
    self.major = major
    self.measuredPower = measuredPower
    self.minor = minor
    self.tags = tags
  }
}

/// What a rider's program must know about a vehicle to tell which step it hears.
public struct Vehicle: Hashable, Sendable {
  /// The name that people use; see `isName`.
  public let name: String
  public let uuid: UUID
  /// In the order of the file. Ids, sides, majors and tags are unique, and there is at least one step.
  public private(set) var steps: [Step]

  /// What makes a list of steps ambiguous or useless.
  public enum Problem: Error, Equatable {
    case noSteps
    case sameID(StepID)
    case sameSide(Side)
    case sameMajor(UInt16)
    case sameTag(TagUID)
  }

  public init(name: String, uuid: UUID, steps: [Step]) throws(Problem) {
    guard !steps.isEmpty else { throw .noSteps }
    for (index, step) in steps.enumerated() {
      for other in steps[..<index] {
        if other.id == step.id { throw .sameID(step.id) }
        if other.major == step.major { throw .sameMajor(step.major) }
        if other.side == step.side { throw .sameSide(step.side) }
        if let tag = step.tags.first(where: other.tags.contains) { throw .sameTag(tag) }
      }
    }
    self.name = name
    self.uuid = uuid
    self.steps = steps
  }

  /// Whether a text can be a vehicle's name. It must suit terminals and fit into a code.
  public static func isName(_ text: String) -> Bool {
    (1...128).contains(text.utf8.count)
      && text.unicodeScalars.allSatisfy { $0.properties.generalCategory != .control }
  }

  /// The rule of `isName`, in words for people.
  public static let nameRule = "1 to 128 bytes of text without control characters"

  /// The vehicle without its tags, for riders. Only the vehicle itself needs its tags, and they may change.
  public var withoutTags: Vehicle {
    var vehicle = self
    for index in steps.indices { vehicle.steps[index].tags = [] }
    return vehicle
  }

  /// The step with this id; nil if the vehicle has none.
  public func step(_ id: StepID) -> Step? { steps.first { $0.id == id } }
  /// The step on this side; nil if the vehicle has none.
  public func step(at side: Side) -> Step? { steps.first { $0.side == side } }
  /// The step whose beacon sends this major; nil if the vehicle has none.
  public func step(major: UInt16) -> Step? { steps.first { $0.major == major } }
}
