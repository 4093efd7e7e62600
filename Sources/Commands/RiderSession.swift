import Configuration
import Glibc
import MQTT
import Domain
import Rider
import StepProtocol
import SystemIO
import Terminal

/// A rider's side of the protocol, over one connection: asks, commands, and believes only what is signed.
final class RiderSession {
  private let access: RiderAccess
  private let connection: MQTTConnection
  private var isConnected = false
  /// What came while something else was waited for, the newest of each step: a broker can send old statements again
  /// without end.
  private var setAside: [StepID: Answer] = [:]
  private let interruption: Interruption
  private let console: Console

  var token: Token { access.token }

  /// Why there is no answer. As it stands it means that nothing was sent that could move a step; whoever has sent such
  /// a thing says something else.
  enum Failure: Error {
    case interrupted
    case timedOut
    case connection(MQTTError)
    case system(SystemError)
  }

  /// A statement and the moment at which it came.
  struct Answer {
    let statement: Statement
    let received: ContinuousClock.Instant

    /// What the controller's clock shows at a moment, milliseconds; never below zero.
    func clock(at moment: ContinuousClock.Instant) -> Int64 {
      max(0, statement.clock + Int64((received.duration(to: moment).inSeconds * 1000).rounded(.down)))
    }
  }

  /// Reads what the rider has, and starts to connect.
  init(
    _ access: RiderAccess, steps: [Step], patience: Duration, interruption: Interruption, console: Console
  ) throws {
    self.access = access
    self.interruption = interruption
    self.console = console
    connection = try MQTTConnection(
      broker: access.broker, subscriptions: steps.map { access.topic.status($0.id) }, reconnecting: .never, patience: patience)
  }

  func close() { connection.close() }

  /// A command that is under way: what its answers have to name.
  struct Pending {
    fileprivate let step: StepID
    fileprivate let digest: CommandDigest
    fileprivate let nonce: [UInt8]
  }

  /// Publishes a command.
  ///
  /// - Returns: nil when the connection is gone and nothing was sent.
  func send(_ request: Command.Request, to step: Step) -> Pending? {
    let command = Command(vehicle: access.vehicle.uuid, step: step.id, request: request, token: access.tokenText)
    let sealed = command.sealed(by: access.device, to: access.encryptionKey)
    let taken = connection.publish(
      topic: access.topic.setPosition(step.id), payload: sealed.bytes, retain: false)
    return taken == nil ? nil : Pending(step: step.id, digest: sealed.digest, nonce: command.nonce)
  }

  /// Asks for a step's status, and with it for a challenge.
  ///
  /// - Throws: `Failure`, or `CommandFailure` when the controller refuses.
  func ask(_ step: Step, until deadline: ContinuousClock.Instant) throws -> (Answer, challenge: [UInt8]) {
    guard let pending = send(.status, to: step) else { throw lost() }
    while true {
      let answer = try answer(to: pending, until: deadline)
      switch answer.statement.answer?.outcome {
      case .challenge(let challenge): return (answer, challenge)
      case .refused(let code): throw CommandFailure(code)
      // To this request there is no such answer; the right one may follow.
      case .obeyed, nil: continue
      }
    }
  }

  /// Waits for an answer to a command.
  ///
  /// A refusal as `replayed` is passed over: the broker delivered our command twice, and the first copy's answer is on
  /// its way (the protocol's section 2).
  func answer(to pending: Pending, until deadline: ContinuousClock.Instant) throws(Failure) -> Answer {
    while true {
      let answer = try receive(until: deadline)
      guard answer.statement.step == pending.step, let content = answer.statement.answer,
        content.command == pending.digest, content.nonce == pending.nonce || content.outcome == .refused(.malformed),
        content.outcome != .refused(.replayed)
      else {
        keep(answer)
        continue
      }
      return answer
    }
  }

  private func keep(_ answer: Answer) {
    let statement = answer.statement
    if let kept = setAside[statement.step]?.statement, kept.epoch == statement.epoch,
      kept.sequence >= statement.sequence
    {
      return
    }
    setAside[statement.step] = answer
  }

  /// The next statement of this vehicle, whatever it is about; of what came while an answer was waited for, only the
  /// newest of each step.
  func next(until deadline: ContinuousClock.Instant?) throws(Failure) -> Answer {
    if let kept = setAside.popFirst() { return kept.value }
    return try receive(until: deadline)
  }

  private func receive(until deadline: ContinuousClock.Instant?) throws(Failure) -> Answer {
    while true {
      // At each turn, for the broker may send more than can be read.
      if interruption.isPending { throw .interrupted }
      // The connection's own patience ends at about the same time, and it knows how far it had come.
      let limit = isConnected ? deadline : deadline.map { $0 + .seconds(1) }
      if let limit, limit <= .now { throw isConnected ? .timedOut : .connection(.timedOut(access.broker, .greeting)) }
      let event: MQTTConnection.Event?
      do throws(MQTTError) { event = try connection.next(until: .now) } catch { throw .connection(error) }
      switch event {
      case .message(let message):
        if let statement = read(message) { return Answer(statement: statement, received: .now) }
      case .connected:
        isConnected = true
        console.detail("connected")
      case .disconnected(let error):
        throw .connection(error)
      case .acknowledged:
        break
      case nil:
        do throws(SystemError) {
          _ = try waitReadable([interruption.number, connection.descriptor], until: limit)
        } catch {
          throw .system(error)
        }
      }
    }
  }

  private func read(_ message: Message) -> Statement? {
    do throws(ProtocolError) {
      let statement = try Statement(payload: message.payload, verifiedBy: access.statementKey)
      guard statement.vehicle == access.vehicle.uuid,
        message.topic == access.topic.status(statement.step)
      else {
        console.detail("ignored a status of another vehicle or step")
        return nil
      }
      return statement
    } catch {
      console.detail("ignored a status that the controller did not sign: \(error)")
      return nil
    }
  }

  /// Why nothing can be sent any more.
  private func lost() -> Failure {
    while true {
      let event: MQTTConnection.Event?
      do throws(MQTTError) { event = try connection.next(until: .now) } catch { return .connection(error) }
      switch event {
      case .disconnected(let error): return .connection(error)
      case nil: return .timedOut
      default: continue
      }
    }
  }
}
