package import Access
package import Domain
import StepProtocol

/// Why there is no sighting, although the device works.
package enum SightingError: Failure, Equatable {
  /// No tag appeared in this time, seconds.
  case noTag(Double)
  /// There is a tag, but it cannot be read: the reason.
  case unreadableTag(String)
  /// The tag names a step, but is not one of the tags on that step.
  case strangeTag(TagUID, step: StepID)
  case tag(StepName.Problem)
  /// The camera saw no code in this time, seconds.
  case noCodeSeen(Double)
  /// There is no code in this picture.
  case noCode(String)
  /// The picture shows the codes of two steps.
  case twoSteps(String, StepID, StepID)
  case code(StepName.Problem)

  package var exitStatus: ExitStatus { .notLocated }

  package var description: String { "not located: \(reason)" }

  /// The reason without the consequence.
  package var reason: String {
    switch self {
    case .noTag(let seconds): "no tag came in \(tenths(seconds)) s"
    case .unreadableTag(let reason): reason
    case .strangeTag(let uid, let step): "the tag \(uid) names the \(step) step, but is not listed as one of its tags"
    case .tag(let problem): "the tag \(problem)"
    case .noCodeSeen(let seconds): "the camera saw no code in \(tenths(seconds)) s"
    case .noCode(let source): "there is no code in \(source)"
    case .twoSteps(let source, let first, let second):
      "\(source) shows the codes of the \(first) and the \(second) step"
    case .code(let problem): "the code \(problem)"
    }
  }

  /// With one decimal.
  private func tenths(_ seconds: Double) -> String {
    let tenths = Int64((seconds * 10).rounded())
    return "\(tenths / 10).\(tenths % 10)"
  }
}
