package import Domain
package import StepProtocol

/// The controller's two clocks at one moment.
package struct ControllerTime: Sendable, Equatable {
  /// Milliseconds since the controller's start, from a clock that is never set: for challenges and deadlines.
  package let clock: Int64
  /// Seconds of Unix time: for tokens and rotating minors alone, because a vehicle's wall clock can be wrong or be set.
  package let wall: Int64

  package init(clock: Int64, wall: Int64) {
    self.clock = clock
    self.wall = wall
  }
}

/// A payload that came on a step's `set_position`.
package struct Request: Sendable, Equatable {
  package let payload: [UInt8]
  /// Whose topic it came on.
  package let step: StepID
  /// The message's retain flag.
  package let isRetained: Bool
  /// What `CommandReader` makes of the payload, where a shell has had that done beside the controller.
  package let command: ReceivedCommand?

  package init(_ payload: [UInt8], on step: StepID, isRetained: Bool, command: ReceivedCommand? = nil) {
    self.payload = payload
    self.command = command
    self.step = step
    self.isRetained = isRetained
  }
}

/// Who sent a request, and what an answer names it by.
struct Sender: Sendable {
  let step: StepID
  let command: CommandDigest
  /// Nil where a malformed command had none.
  let nonce: [UInt8]?
  let rider: String
  let device: VerificationKey
  /// The token's `jti`.
  let token: String
  /// Nil where a malformed command does not say it.
  let asked: VehicleEvent.Position?
  /// Of the proof, in a command to move.
  let method: ProofMethod?
  /// Of a beacon's proof.
  let zone: Zone?

  init(
    _ request: Request, _ command: CommandDigest, nonce: [UInt8]?, _ token: Token, asking: Command.Request? = nil
  ) {
    step = request.step
    self.command = command
    self.nonce = nonce
    rider = token.subject
    device = token.device
    self.token = token.id
    var proof: Proof?
    switch asking {
    case .status?: asked = .unknown
    case .stop?: asked = .stop
    case .move(let move)?:
      asked = move.target == .open ? .open : .close
      proof = move.proof
    case nil: asked = nil
    }
    method = proof?.method
    if case .beacon(let zone, _, _)? = proof { self.zone = zone } else { zone = nil }
  }
}

/// A motion that is wanted, and why.
struct Undertaking: Sendable {
  enum Cause: Sendable {
    /// A command that stood every check.
    case command(Command.Move, Sender)
    /// The vehicle moves and the step is out, so the controller itself closes it.
    case interlock
  }

  /// How long a retraction may take to begin, milliseconds.
  private static let patience = Session.longestDeadline

  let cause: Cause
  let step: StepID
  let target: Command.Move.Target
  /// On the controller's clock: it does not begin at or after it.
  let deadline: Int64

  init(_ move: Command.Move, by sender: Sender) {
    cause = .command(move, sender)
    (step, target, deadline) = (sender.step, move.target, move.deadline)
  }

  init(retracting step: StepID, at clock: Int64) {
    cause = .interlock
    (self.step, target, deadline) = (step, .close, clock + Self.patience)
  }

  /// Who is told what becomes of it.
  var sender: Sender? { if case .command(_, let sender) = cause { sender } else { nil } }
  var challenge: [UInt8]? { if case .command(let move, _) = cause { move.challenge } else { nil } }
}
