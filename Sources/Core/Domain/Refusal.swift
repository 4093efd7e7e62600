/// Why the controller did not obey a command.
public struct Refusal: Hashable, Sendable {
  public let code: RefusalCode
  /// Whether the same rider can succeed with one more try, with a new challenge and a new proof. The controller says
  /// so, because a reader may not know the code.
  public let retryCanHelp: Bool
  /// With `approaching`: what comes, if the controller says so.
  public let oncoming: Oncoming?

  public init(_ code: RefusalCode, retryCanHelp: Bool, oncoming: Oncoming? = nil) {
    self.code = code
    self.retryCanHelp = retryCanHelp
    self.oncoming = oncoming
  }

  /// A refusal as version 1 defines it for this code.
  public init(_ code: RefusalCode, oncoming: Oncoming? = nil) {
    self.init(code, retryCanHelp: code.retryCanHelp, oncoming: oncoming)
  }
}

/// Something on the road that moves towards a step.
public struct Oncoming: Hashable, Sendable {
  /// Its kind, as a word: `bicycle`, `car`.
  public let category: String
  /// Milliseconds until it may reach the step.
  public let arrival: Int64

  public init(category: String, arrival: Int64) {
    self.category = category
    self.arrival = arrival
  }

  /// `a bicycle`
  public var phrase: String {
    category == "other" ? "something" : "a \(category.split(separator: "_").joined(separator: " "))"
  }
}

/// Why the controller did not obey. The raw value is the word in a statement.
public enum RefusalCode: OpenWord {
  /// Decrypted, and signed by a known rider, but not a command as the protocol defines it.
  case malformed
  /// For another vehicle.
  case wrongVehicle
  /// Not the topic's step, or not allowed by the token, or not the step that the rider faces.
  case wrongStep
  /// The token is not valid yet.
  case tokenNotYetValid
  /// The token has expired.
  case tokenExpired
  /// The operator has revoked the token or the device that it is bound to.
  case tokenRevoked
  /// A retained message: nobody can tell when it was sent.
  case retained
  /// The challenge or the command was used before.
  case replayed
  /// The challenge is unknown or too old, the epoch has ended, or the deadline has passed.
  case expired
  /// The controller's policy does not accept this proof method.
  case proofNotAccepted
  /// The proof was heard or read too long ago.
  case staleProof
  /// On this side, but not located, or not within the zone that the policy requires.
  case notNear
  /// The vehicle does not hear the rider's device at this step.
  case notHeard
  /// The step is moving.
  case busy
  /// Something is in the way.
  case obstructed
  /// Something on the road moves towards the step.
  case approaching
  /// The vehicle must watch the road, and cannot see it.
  case blind
  /// For now, only the device that opened the step may close it.
  case reserved
  /// The vehicle moves, or does not report that it stands.
  case vehicleMoving
  /// This device has moved steps too often lately.
  case tooOften
  /// An input of the vehicle, such as a stop button, forbids every motion.
  case stopped
  /// The journal cannot be written or the servo cannot be driven.
  case unavailable
  /// A reason that version 1 does not know. It is a refusal all the same.
  case other(String)

  public static let known: [RefusalCode] = [
    .malformed, .wrongVehicle, .wrongStep, .tokenNotYetValid, .tokenExpired, .tokenRevoked, .retained, .replayed,
    .expired, .proofNotAccepted, .staleProof, .notNear, .notHeard, .busy, .obstructed, .approaching, .blind, .reserved,
    .vehicleMoving, .tooOften, .stopped, .unavailable,
  ]

  public var rawValue: String {
    switch self {
    case .malformed: "malformed"
    case .wrongVehicle: "wrong_vehicle"
    case .wrongStep: "wrong_step"
    case .tokenNotYetValid: "token_not_yet_valid"
    case .tokenExpired: "token_expired"
    case .tokenRevoked: "token_revoked"
    case .retained: "retained"
    case .replayed: "replayed"
    case .expired: "expired"
    case .proofNotAccepted: "proof_not_accepted"
    case .staleProof: "stale_proof"
    case .notNear: "not_near"
    case .notHeard: "not_heard"
    case .busy: "busy"
    case .obstructed: "obstructed"
    case .approaching: "approaching"
    case .blind: "blind"
    case .reserved: "reserved"
    case .vehicleMoving: "vehicle_moving"
    case .tooOften: "too_often"
    case .stopped: "stopped"
    case .unavailable: "unavailable"
    case .other(let word): word
    }
  }

  fileprivate var retryCanHelp: Bool {
    switch self {
    case .expired, .staleProof, .notNear, .notHeard, .busy, .obstructed, .approaching, .blind, .reserved,
      .vehicleMoving,
      .tooOften, .stopped, .unavailable:
      true
    case .malformed, .wrongVehicle, .wrongStep, .tokenNotYetValid, .tokenExpired, .tokenRevoked, .retained,
      .replayed, .proofNotAccepted, .other:
      false
    }
  }
}

/// Why a motion did not end at its target, or what else is wrong with a step.
public enum Fault: OpenWord {
  /// The controller stopped (power, crash) while the step moved. The step's position is unknown.
  case interrupted
  /// Something is in the way.
  case obstructed
  /// The motion took longer than allowed.
  case timeout
  /// The servo's driver failed.
  case driver
  /// The vehicle moves, or does not report that it stands, while the step is out.
  case vehicleMoving
  /// An input of the vehicle, such as a stop button, forbids every motion.
  case stopped
  /// The motion ended, but the switch at that end does not detect the step.
  case endMissed
  /// The inputs contradict one another, or one cannot be read.
  case sensor
  /// A reason that version 1 does not know.
  case other(String)

  public static let known: [Fault] = [
    .interrupted, .obstructed, .timeout, .driver, .vehicleMoving, .stopped, .endMissed, .sensor,
  ]

  public var rawValue: String {
    switch self {
    case .interrupted: "interrupted"
    case .obstructed: "obstructed"
    case .timeout: "timeout"
    case .driver: "driver"
    case .vehicleMoving: "vehicle_moving"
    case .stopped: "stopped"
    case .endMissed: "end_missed"
    case .sensor: "sensor"
    case .other(let word): word
    }
  }
}
