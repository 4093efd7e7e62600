import Bluetooth
public import Domain
public import Encoding

/// Why a request to a vehicle failed.
public enum RiderError: Failure {
  /// A signal or the caller ended the wait before a command was sent.
  case interrupted
  /// The vehicle did not answer, and no command was sent.
  ///
  /// `isOffline`: the broker says that the controller is offline. That message is not signed.
  case noAnswer(isOffline: Bool)
  /// The vehicle did not answer, and no stop was sent.
  case notStopped(isOffline: Bool)
  /// There is no connection to the broker, and no command was sent. The error is the connection's.
  case notSent(any Failure)
  /// The vehicle refused. Nothing moved for this command. The proof is that of the command, if one was sent.
  case refused(Refusal, of: Proof?)
  /// A command was sent, and its outcome is unknown.
  case unconfirmed(Doubt, step: StepID)
  /// A stop was sent, and it is unknown whether it arrived. Sending another stop is safe.
  case mayStillMove(Doubt, step: StepID)

  /// Why the outcome of a command is unknown.
  public enum Doubt: Sendable {
    /// The caller ended the wait.
    case interrupted
    /// No statement confirmed the command in time.
    case timedOut
    /// The connection to the broker ended.
    case connection(any Failure)
    /// The step came to rest somewhere else.
    case restsElsewhere(Position)
    /// The step stopped on its way.
    case stopped(Fault?)
  }

  /// Whether the step may have moved for this command. If so, look at the step before sending the command again.
  public var mayHaveMoved: Bool {
    switch self {
    case .interrupted, .noAnswer, .notStopped, .notSent, .refused, .mayStillMove: false
    case .unconfirmed: true
    }
  }

  /// Whether the same rider can succeed with a new challenge and a new proof. After an unconfirmed command somebody
  /// must look at the step first.
  public var retryCanHelp: Bool {
    switch self {
    case .interrupted, .unconfirmed: false
    case .noAnswer, .notStopped, .notSent, .mayStillMove: true
    case .refused(let refusal, _): refusal.retryCanHelp
    }
  }

  public var isInterruption: Bool { if case .interrupted = self { true } else { false } }

  public var exitStatus: ExitStatus {
    switch self {
    case .interrupted: .failure
    case .noAnswer, .notStopped: .unavailable
    case .notSent(let reason): reason.exitStatus
    case .refused: .refused
    case .unconfirmed, .mayStillMove: .unconfirmed
    }
  }

  public var description: String {
    switch self {
    case .interrupted: "interrupted"
    case .noAnswer: "the vehicle does not answer; nothing was sent that could move a step"
    case .notStopped: "the vehicle does not answer; the step was not stopped"
    case .notSent(let reason): reason.description
    case .refused(let refusal, let proof):
      "the vehicle refused (\(refusal.code.rawValue)): \(refusal.oncoming?.sentence ?? refusal.code.sentence(of: proof))"
    case .unconfirmed(.restsElsewhere(let position), let step): "the \(step) step came to rest \(position.state)"
    case .unconfirmed(let doubt, let step): "\(doubt.reason): the \(step) step may have moved"
    case .mayStillMove(let doubt, let step): "\(doubt.reason): the \(step) step may still move"
    }
  }

  public var hint: String? { hint(naming: nil) }

  /// - Parameter vehicle: the value of --vehicle with which another command means the same vehicle; nil if it need not
  ///   be given.
  package func hint(naming vehicle: String?) -> String? {
    func command(_ name: String) -> String {
      "`stepctl \(name)\(vehicle.map { " \(shellCommand("--vehicle", $0))" } ?? "")`"
    }
    let looking = "look at it, or ask with \(command("status"))"
    switch self {
    case .interrupted: return nil
    case .noAnswer(true), .notStopped(true): return "the broker says that the vehicle's controller is offline"
    case .noAnswer(false), .notStopped(false):
      return "see whether stepd runs; if stepd runs, ask your operator for new access"
    case .notSent(let reason) where reason.exitStatus == .unavailable:
      let area = reason is LinkError ? "link" : "broker"
      return [reason.hint, "\(command("doctor \(area)")) says what is wrong"].compactMap(\.self).joined(separator: "; ")
    case .notSent(let reason): return reason.hint
    case .refused(let refusal, _): return refusal.retryCanHelp ? "trying again can help" : nil
    case .mayStillMove: return "look at it, and run \(command("stop")) again"
    case .unconfirmed(.interrupted, _): return "\(command("stop")) stops it, and \(command("status")) says where it is"
    case .unconfirmed(.timedOut, _), .unconfirmed(.connection, _): return looking
    case .unconfirmed(.restsElsewhere, _):
      return "somebody stopped or reversed it; \(command("status")) says where it is"
    case .unconfirmed(.stopped(let fault), _): return fault.map { "\($0.sentence); \(looking)" } ?? looking
    }
  }

  public var details: [JSON.Member] {
    switch self {
    case .interrupted, .noAnswer, .notStopped, .mayStillMove: []
    case .notSent(let reason): reason.details
    case .refused(let refusal, _):
      [.init("refusal", .string(refusal.code.rawValue)), .init("retry", .bool(refusal.retryCanHelp))]
        + (refusal.oncoming?.details ?? [])
    case .unconfirmed(_, let step): [.init("step", .string(step.description))]
    }
  }
}

extension RiderError.Doubt {
  fileprivate var reason: String {
    switch self {
    case .interrupted: "interrupted after the command was sent"
    case .timedOut: "no confirmation came in time"
    case .connection(let error): "\(error) after the command was sent"
    case .restsElsewhere(let position): "the step came to rest \(position.state)"
    case .stopped(let fault): "the step stopped on its way (\(fault?.rawValue ?? "fault"))"
    }
  }
}

extension Fault {
  /// The meaning of a fault for the rider.
  public var sentence: String {
    switch self {
    case .interrupted: "the controller was restarted while the step moved"
    case .obstructed: "something is in the way"
    case .timeout: "the motion took too long"
    case .driver: "the controller cannot drive the servo; its log says why"
    case .vehicleMoving: "the vehicle is moving"
    case .stopped: "a stop button or switch on the vehicle forbids motion"
    case .endMissed: "the step did not arrive at its end"
    case .sensor: "the sensors at the step contradict one another, or one has failed"
    case .other: "this stepctl does not know the fault"
    }
  }
}

extension RefusalCode {
  /// The meaning of a refusal for the rider.
  ///
  /// - Parameter proof: the proof in the command; nil if the refusal came before a command was sent.
  public func sentence(of proof: Proof? = nil) -> String {
    switch self {
    case .malformed: "it does not understand the command; is stepctl as new as the vehicle?"
    case .wrongVehicle: "the token is for another vehicle"
    case .wrongStep: proof?.otherStep ?? "the token is not for this step"
    case .tokenNotYetValid: "the token is not valid yet"
    case .tokenExpired: "the token has expired; ask the operator for a new one"
    case .tokenRevoked: "the operator has withdrawn your token; ask the operator"
    case .retained: "the command was retained by the broker"
    case .replayed: "the command was used before"
    case .expired: "the command came too late, or the controller was restarted"
    case .proofNotAccepted:
      "it does not accept this proof; use a dynamic tag or a rotating beacon"
    case .staleProof: "the proof is too old, or was used before"
    case .notNear: "you are too far from the step"
    case .notHeard: "it does not hear your device at this step"
    case .busy: "the step is moving"
    case .obstructed: "something is in the way"
    case .approaching: "something on the road comes towards the step"
    case .blind: "it cannot see whether something comes towards the step"
    case .reserved: "somebody else has just opened the step, and only that rider may close it now"
    case .vehicleMoving: "the vehicle is moving"
    case .tooOften: "you have moved steps too often; wait a minute"
    case .stopped: "a stop button or switch on the vehicle forbids motion"
    case .unavailable: "the controller cannot move the step; its log says why"
    case .other: "this stepctl does not know the reason"
    }
  }
}

extension Oncoming {
  fileprivate var sentence: String { "\(phrase) comes towards the step" }

  package var details: [JSON.Member] {
    [
      .init("category", .string(category)), .init("arrival_s", .rounded(Double(arrival) / 1000, places: 3)),
    ]
  }
}

extension Proof {
  /// Why this proof does not belong to the step that the command named.
  fileprivate var otherStep: String {
    switch self {
    case .beacon:
      "another step's beacon was heard more strongly than this step's, or the beacon is a copy"
    case .tag: "the tag is not one of those on this step"
    case .code: "the code is not the one on this step"
    case .heard: "the vehicle hears you at another step"
    }
  }
}

extension Position {
  /// As a word for a state: open, closed.
  public var state: String {
    switch self {
    case .open: "open"
    case .close: "closed"
    case .unknown: "somewhere between open and closed"
    }
  }
}
