import Domain
import Ranging
import StepProtocol
import Terminal

/// What the rider should do next.
enum Advice: Equatable {
  case listen
  case findVehicle
  case takeInHand
  case comeCloser(Side?)
  /// The rider faces another step than the one that they asked for.
  case goTo(Side)
  case holdInFront(Side)
  case helpRadio
  case removeBeacon(StepID)
  case unlevelled(StepID)
  case faceOneStep
  case faceStep(Side)
  case open(Side)

  /// The longest wait for the first frame, seconds.
  private static let patience = 3.0
  /// The time that a rider may take to come closer, seconds.
  private static let approach = 5.0
  /// Below this distance in metres, distance is not the reason why the rider is not located.
  private static let reach = RangingModel.reach

  /// - Parameter side: the side that the rider asked for; nil for either.
  init(_ report: LocationReport, to side: Side? = nil) {
    let location = report.location
    if location.missing == .unlevelled, let unlevelled = location.readings.first(where: \.isUnlevelled) {
      self = .unlevelled(unlevelled.step.id)
      return
    }
    let heard = location.readings.filter { $0.packets > 0 }
    guard let nearest = heard.min(by: { Self.metres($0) < Self.metres($1) }) else {
      let isNew = location.time < Self.patience && location.readings.allSatisfy { $0.age == nil }
      self = isNew ? .listen : .findVehicle
      return
    }
    if let contested = heard.first(where: \.isContested) {
      self = .removeBeacon(contested.step.id)
      return
    }
    if let side, let facing = location.facing, facing.side != side {
      self = .goTo(side)
      return
    }
    let reading = location.facing.flatMap(location.reading) ?? nearest
    let isReached = Self.metres(reading) <= Self.reach
    let isScarce =
      reading.packets < RangingModel.locatedLeast || (reading.age ?? .infinity) > RangingModel.momentWindow
    self =
      switch location.facing?.side {
      case let side? where location.isLocated: .open(side)
      case _ where isReached && isScarce && location.time >= Self.patience: .takeInHand
      case _? where !isReached && reading.zone != .far && location.facedFor >= Self.approach: .helpRadio
      case let side? where location.facedFor >= Self.patience && Self.isBodyBetween(location): .holdInFront(side)
      case let side?: isReached ? .faceStep(side) : .comeCloser(side)
      case nil: isReached ? .faceOneStep : .comeCloser(nil)
      }
  }

  private static func isBodyBetween(_ location: Location) -> Bool {
    if case .bodyBetween? = location.missing { true } else { false }
  }

  private static func metres(_ reading: Location.Reading) -> Double { reading.distance?.metres ?? .infinity }

  /// - Parameter key: the key that moves the step, where there are keys.
  func sentence(naming vehicle: String, pressing key: Command.Move.Target? = nil) -> String {
    switch self {
    case .listen: "listening for \(vehicle)"
    case .findVehicle: "no beacon of \(vehicle) is heard"
    case .takeInHand: "take it out of your pocket"
    case .comeCloser(let side?): "come closer on the \(side.rawValue) side"
    case .comeCloser(nil): "come closer to one step"
    case .goTo(let side): "go to the \(side.rawValue) side"
    case .holdInFront(let side): "go up to the \(side.rawValue) step and hold the device in front of you"
    case .helpRadio: "come closer, take it out of your pocket, or touch the tag"
    case .removeBeacon(let id): "two beacons send as the \(id) step: remove one"
    case .unlevelled(let id): "the \(id) step's beacon has no known strength: touch the tag"
    case .faceOneStep: "stand in front of one step"
    case .faceStep(let side): "stand in front of the \(side.rawValue) step"
    case .open(let side):
      switch key {
      case .open: "ready: press o to open"
      case .close: "ready: press c to close"
      case nil: "ready: stepctl open --side \(side.rawValue)"
      }
    }
  }

  var style: Console.Style {
    switch self {
    case .open: .good
    case .findVehicle, .removeBeacon, .unlevelled: .bad
    default: .strong
    }
  }
}
