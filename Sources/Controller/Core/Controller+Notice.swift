import Domain
import Encoding
package import StepProtocol

/// The operator's notices to the controller. A notice is on the medium before it is in force, so that neither a restart
/// nor an older notice brings back what was withdrawn.
extension Controller {
  /// The keys that tokens and notices may be signed by.
  package var operatorKeys: [VerificationKey] { notice?.keys ?? [keys.operatorKey] }

  mutating func receive(notice payload: [UInt8]) {
    // One that is on its way to the medium counts here: what is written later says all that it said.
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
    // A journal that was reported late may be the older one.
    guard new.sequence > notice?.sequence ?? -1 else { return }
    notice = new
    effects.append(.obey(new))
    record(.noticed(new.sequence))
    tell(.init(.notice, time: now.wall, notice: new.sequence))
  }

  /// The notice is not on the medium. When it arrives again it is tried again.
  mutating func forget(_ new: Notice, _ reason: String) {
    if journal.notice?.content == new { journal.notice = notice.map { KeptNotice($0, root: keys.operatorKey) } }
    record(.noticeNotJournaled(reason))
  }
}

/// A notice as the journal keeps it.
package struct KeptNotice: Sendable, Equatable {
  /// What the journal calls it. No step's id has a space in it.
  static let name = "operator notice"

  let content: Notice
  /// The key of the operator's that the controller was installed with. Where that is another now, the notice is
  /// somebody else's.
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
