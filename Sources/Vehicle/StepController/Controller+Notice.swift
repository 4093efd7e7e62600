import Domain
import Encoding
package import StepProtocol

/// The operator's notices to the controller. A notice is on the medium before it takes effect. So neither a restart nor
/// an older notice restores what was withdrawn.
extension Controller {
  /// The keys that may sign tokens and notices.
  package var operatorKeys: [VerificationKey] { notice?.keys ?? [keys.operatorKey] }

  mutating func receive(notice payload: [UInt8]) {
    // Compares with the newest known notice, even if it is still being written: a later journal includes it.
    let known = journal.notice?.content
    do throws(ProtocolError) {
      guard
        let new = try Notice.read(
          payload, verifiedBy: known?.keys ?? [keys.operatorKey], after: known?.sequence)
      else { return }
      guard new.vehicle == vehicle.uuid else { throw .malformed("the notice is for another vehicle") }
      journal.notice = KeptNotice(new, root: keys.operatorKey)
      commit(.notice(new))
    } catch {
      record(.noticeIgnored(error))
    }
  }

  /// The notice is on the medium.
  mutating func obey(_ new: Notice) {
    // Journals may be reported out of order, so this notice may be older than the one in force.
    guard new.sequence > notice?.sequence ?? -1 else { return }
    notice = new
    effects.append(.obey(new))
    record(.noticed(new.sequence))
    tell(.init(.notice, time: now.wall, notice: new.sequence))
  }

  /// The notice could not be written. The controller tries again when it arrives again.
  mutating func forget(_ new: Notice, _ reason: String) {
    if journal.notice?.content == new { journal.notice = notice.map { KeptNotice($0, root: keys.operatorKey) } }
    record(.noticeNotJournaled(reason))
  }
}

/// A notice as the journal keeps it.
package struct KeptNotice: Sendable, Equatable {
  /// Its name in the journal. No step id contains a space.
  static let name = "operator notice"

  let content: Notice
  /// The operator's key that the controller was installed with. If the installed key is now a different one, the notice
  /// is from a former operator.
  let root: VerificationKey

  package init(_ content: Notice, root: VerificationKey) {
    self.content = content
    self.root = root
  }

  init?(_ value: JSON) {
    guard value.object?.count == 2, let root = value["root"].flatMap({ try? VerificationKey(jwk: $0) }),
      let content = value["claims"].flatMap({ try? Notice(claims: $0) })
    else { return nil }
    self.init(content, root: root)
  }

  var json: JSON { ["root": root.jwk, "claims": content.claims] }
}
