public import Domain
import Encoding

/// Why a message cannot be read from a tag, or written to it.
public enum NDEFError: Failure, Hashable, Sendable {
  /// The bytes are not an NDEF message; the offset is within the message.
  case malformedMessage(String, offset: Int)
  /// The payload of a Text or URI record does not follow its definition.
  case malformedRecord(String)

  /// The capability container is empty: the tag was never formatted.
  case notFormatted
  /// The capability container is empty, but so many pages hold data, which may be another system's.
  case inUse(pages: Int)
  /// The capability container is for something other than NDEF.
  case notNDEF(container: [UInt8])
  /// The major version of the tag's mapping is unknown.
  case unsupportedVersion(major: UInt8, minor: UInt8)
  /// The tag's memory violates the specification at this byte.
  case malformedTag(String, offset: Int)
  /// The tag is formatted, but has no NDEF message, not even an empty one.
  case noMessage
  /// Reading needs a secret.
  case unreadable(access: UInt8)

  /// The message is longer than the room on the tag. Both values are in bytes.
  case tooSmall(needed: Int, available: Int)
  /// The message would fit if there were no other data behind the old message.
  case occupied(needed: Int, available: Int)
  /// The tag's message is malformed, so nothing of it can be kept beside a new one; the offset is within the message.
  case otherContent(String, offset: Int)
  /// The tag declares itself read-only.
  case readOnly
  /// Writing needs a secret.
  case writeProtected(access: UInt8)
  /// A password protects the pages from this one on, and one of them must be changed or read.
  case passwordProtected(page: Int)
  /// The tag refuses to read this page, for an unknown reason.
  case pageRefused(Int)
  /// From this page on, the chip shows its UID or its counter in place of a part of the message.
  case mirrored(page: Int)
  /// Lock bits protect a page that must change.
  case locked(page: Int)
  /// A lock bit is not set, and is frozen: it can no longer be set.
  case lockFrozen(page: Int)
  /// The capability container has wrong bits set, which can never be cleared.
  case containerNotFixable(found: [UInt8], wanted: [UInt8])
  /// The chip is unknown, and formatting and locking need to know it.
  case unknownChip

  /// A Type 4 tag refused a command with a status word.
  case refused(String, status: UInt16)
  /// The answer of a Type 4 tag is too short or too long.
  case malformedAnswer(String)

  public var exitStatus: ExitStatus { .badData }

  public var hint: String? {
    switch self {
    case .occupied, .otherContent: "--replace-all gives up the other data"
    case .inUse: "use another tag; --replace-all gives up the data, and formats the tag for ever"
    case .passwordProtected: "use another tag, or remove the password with the program that set it"
    case .mirrored: "use another tag, or switch the mirror off with the program that set it"
    case .malformedMessage, .malformedRecord, .notFormatted, .notNDEF, .unsupportedVersion, .malformedTag, .noMessage,
      .unreadable, .tooSmall, .readOnly, .writeProtected, .pageRefused, .locked, .lockFrozen, .containerNotFixable,
      .unknownChip, .refused, .malformedAnswer:
      nil
    }
  }

  public var description: String {
    switch self {
    case .malformedMessage(let reason, let offset): "not an NDEF message at byte \(offset): \(reason)"
    case .malformedRecord(let reason): "malformed NDEF record: \(reason)"
    case .notFormatted: "the tag is not formatted: its capability container is empty"
    case .inUse(let pages):
      "the tag is not formatted, but \(pages == 1 ? "a page" : "\(pages) pages") of it \(pages == 1 ? "holds" : "hold")"
        + " data, perhaps another system's; nothing was written"
    case .notNDEF(let container): "not an NDEF tag: its capability container is \(hexadecimal(container))"
    case .unsupportedVersion(let major, let minor):
      "the tag's mapping version is \(major).\(minor), which is not supported"
    case .malformedTag(let reason, let offset): "malformed tag at byte \(offset): \(reason)"
    case .noMessage: "the tag is formatted, but holds no NDEF message"
    case .unreadable(let access): "the tag cannot be read without a secret (access \(hexadecimal([access])))"
    case .tooSmall(let needed, let available):
      "the tag is too small: the message takes \(needed) bytes, and \(available) fit"
    case .otherContent(let reason, let offset):
      "the tag holds other data, which is not an NDEF message (byte \(offset): \(reason)); nothing was written"
    case .occupied(let needed, let available):
      "the tag holds other data: the message takes \(needed) bytes, and \(available) fit unless it is replaced"
    case .readOnly: "the tag is read-only"
    case .writeProtected(let access):
      "the tag cannot be written without a secret (access \(hexadecimal([access])))"
    case .passwordProtected(let page): "the tag is protected by a password from page \(page) on"
    case .pageRefused(let page): "page \(page) of the tag cannot be read"
    case .mirrored(let page): "the tag shows its UID or counter in place of page \(page) (ASCII mirror)"
    case .locked(let page): "page \(page) of the tag is locked"
    case .lockFrozen(let page): "page \(page) of the tag can no longer be locked: its lock bit is frozen"
    case .containerNotFixable(let found, let wanted):
      "the capability container is \(hexadecimal(found)) and can never become \(hexadecimal(wanted))"
    case .unknownChip: "the tag's chip is not known, so it can be neither formatted nor locked"
    // ISO/IEC 7816-4, 5.6: the security status is not satisfied.
    case .refused(let command, 0x6982): "the tag needs a key to \(command)"
    case .refused(let command, let status):
      "the tag refused to \(command): status \(hexadecimal(status.bigEndianBytes))"
    case .malformedAnswer(let reason): "malformed answer of the tag: \(reason)"
    }
  }
}
