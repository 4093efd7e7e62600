import Domain
import StepController
import StepProtocol

/// The result of a command or of a motion, in words that can be searched for in a journal and counted.
struct Outcome: Sendable {
  enum Word: String, CaseIterable, Sendable {
    /// A question was answered with a challenge.
    case challenged
    /// The step is already where the command wants it.
    case answered
    case refused
    case began
    case stopped
    case ended
    case fault
    /// A message that gets no answer.
    case ignored
  }

  let step: StepID
  let word: Word
  /// A refusal's code, or a fault.
  var code: String?
  /// More about the reason: the failed check, if `code` covers several; why a motion began without a request; why a
  /// message was ignored.
  var cause: String?
  /// `open` or `close`: the target of a motion.
  var position: String?
  var asker: Asker?

  init(
    _ step: StepID, _ word: Word, code: String? = nil, cause: String? = nil, position: String? = nil,
    by asker: Asker? = nil
  ) {
    (self.step, self.word, self.code, self.cause, self.position, self.asker) = (
      step, word, code, cause, position, asker
    )
  }
}

extension Controller.Event {
  /// Nil if the event is not about a step, or if another event reports it too.
  var outcome: Outcome? {
    switch self {
    case .refused(let step, let code, let cause, let asker):
      Outcome(step, .refused, code: code.rawValue, cause: cause?.rawValue, by: asker)
    case .challenged(let step, let asker): Outcome(step, .challenged, by: asker)
    case .answered(let step, let asker): Outcome(step, .answered, by: asker)
    case .stopped(let step, let asker): Outcome(step, .stopped, by: asker)
    case .began(let step, let target, let asker): Outcome(step, .began, position: target.rawValue, by: asker)
    case .retracts(let step):
      Outcome(step, .began, cause: "vehicle_moving", position: Command.Move.Target.close.rawValue)
    case .ended(let step, let position, let asker): Outcome(step, .ended, position: position.rawValue, by: asker)
    case .failed(let step, let fault, _, let asker): Outcome(step, .fault, code: fault.rawValue, by: asker)
    case .unauthenticated(let step, _): Outcome(step, .ignored, cause: CommandOpener.Reason.strangers)
    case .lost, .notJournaled, .noticed, .noticeIgnored, .noticeNotJournaled, .unwatched, .farRoad: nil
    }
  }
}

extension CommandOpener.Reason {
  static let strangers = "unauthenticated"

  /// The reason as one word.
  var cause: String {
    switch self {
    case .notRiders: Self.strangers
    case .excess: "excess"
    }
  }
}
