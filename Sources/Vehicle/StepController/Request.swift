package import Domain
import Ranging
package import StepProtocol

/// The controller's two clocks at one moment.
package struct ControllerTime: Sendable, Equatable {
  /// Milliseconds since the controller's start, from a clock that is never set: for challenges and deadlines.
  package let clock: Int64
  /// Milliseconds of Unix time: only for tokens and rotating minors, because a vehicle's wall clock can be wrong or can
  /// be set.
  package let wallMilliseconds: Int64

  package init(clock: Int64, wallMilliseconds: Int64) {
    (self.clock, self.wallMilliseconds) = (clock, wallMilliseconds)
  }

  /// - Parameter wall: seconds of Unix time.
  package init(clock: Int64, wall: Int64) { self.init(clock: clock, wallMilliseconds: wall * 1000) }

  /// Seconds.
  package var wall: Int64 { wallMilliseconds / 1000 }
}

/// A payload that arrived on a step's `set_position`, or in the compact form on a link.
package struct Request: Sendable, Equatable {
  package let payload: [UInt8]
  /// The step of the topic, or of the frame.
  package let step: StepID
  /// The message's retain flag.
  package let isRetained: Bool
  /// The result of `CommandReader` for the payload, if a shell has already run it outside the controller.
  package let command: ReceivedCommand?
  /// Nil if it came from the broker.
  package let origin: LinkOrigin?

  package init(
    _ payload: [UInt8], on step: StepID, isRetained: Bool, command: ReceivedCommand? = nil,
    from origin: LinkOrigin? = nil
  ) {
    self.payload = payload
    self.command = command
    self.step = step
    self.isRetained = isRetained
    self.origin = origin
  }
}

/// The link on which a request came. Its answers go there, and nowhere else.
package struct LinkOrigin: Sendable, Equatable {
  /// The link's number. No number is used twice in a run.
  package let link: Int
  /// Seals the answers.
  package let key: AnswerKey
  /// How strong the link was at the vehicle when the request came, dBm; nil if it was not measured.
  package let level: Int8?

  package init(link: Int, key: AnswerKey, level: Int8? = nil) {
    (self.link, self.key, self.level) = (link, key, level)
  }
}

/// Who asked, and with which proof, as far as a log may say.
package struct Asker: Sendable, Equatable {
  package let rider: String
  /// The token's `jti`.
  package let token: String
  /// The method of the proof, in a command to move.
  package let method: ProofMethod?
  /// The zone of a beacon proof.
  package let zone: Zone?
  /// Metres: the free-space distance for the level of the step's beacon in the proof.
  package let distance: Double?
  /// What was asked for, as in an event; nil if a malformed command does not say it.
  package let asked: VehicleEvent.Position?

  package init(
    rider: String, token: String, method: ProofMethod? = nil, zone: Zone? = nil, distance: Double? = nil,
    asked: VehicleEvent.Position? = nil
  ) {
    (self.rider, self.token, self.method, self.zone, self.distance) = (rider, token, method, zone, distance)
    self.asked = asked
  }
}

/// Who sent a request, and the values by which an answer refers to it.
struct Sender: Sendable {
  let step: StepID
  let command: CommandDigest
  /// Nil if a malformed command has none.
  let nonce: [UInt8]?
  let device: VerificationKey
  let asker: Asker
  /// Nil if a malformed command does not say it.
  let asked: VehicleEvent.Position?
  /// Nil if the request came from the broker.
  let origin: LinkOrigin?

  /// - Parameter step: the step of the request's topic.
  init(
    _ command: CommandDigest, on step: Step, nonce: [UInt8]?, _ token: Token, asking: Command.Request? = nil,
    from origin: LinkOrigin? = nil
  ) {
    self.step = step.id
    self.command = command
    self.origin = origin
    self.nonce = nonce
    device = token.device
    var proof: Proof?
    switch asking {
    case .status?: asked = .unknown
    case .stop?: asked = .stop
    case .move(let move)?:
      asked = move.target == .open ? .open : .close
      proof = move.proof
    case nil: asked = nil
    }
    var heard: (zone: Zone, level: Int?)?
    if case .beacon(let zone, _, let beacons)? = proof {
      heard = (zone, beacons.first { $0.major == step.major }?.level)
    }
    asker = Asker(
      rider: token.subject, token: token.id, method: proof?.method, zone: heard?.zone,
      distance: heard?.level.map { RangingModel.metres(at: Double($0)) }, asked: asked)
  }
}

/// A requested motion, and its reason.
struct MotionRequest: Sendable {
  enum Cause: Sendable {
    /// A command that passed every check.
    case command(Command.Move, Sender)
    /// The vehicle moves and the step is out, so the controller itself closes it.
    case interlock
  }

  /// How long a retraction may take to begin, milliseconds.
  private static let timeout = Session.longestDeadline

  let cause: Cause
  let step: StepID
  let target: Command.Move.Target
  /// On the controller's clock: the motion does not begin at this time or later.
  let deadline: Int64

  init(_ move: Command.Move, by sender: Sender) {
    cause = .command(move, sender)
    (step, target, deadline) = (sender.step, move.target, move.deadline)
  }

  init(retracting step: StepID, at clock: Int64) {
    cause = .interlock
    (self.step, target, deadline) = (step, .close, clock + Self.timeout)
  }

  /// The sender, who is told the outcome.
  var sender: Sender? { if case .command(_, let sender) = cause { sender } else { nil } }
  var challenge: [UInt8]? { if case .command(let move, _) = cause { move.challenge } else { nil } }
}
