package import Domain
import Encoding
import NDEF
package import SystemIO
import Tags

/// Why a reader or a tag cannot be used.
///
/// Errors in the content of a tag are `NDEFError`, and an NTAG 424 DNA's answers about its keys are `NTAG424Error`:
/// this module passes both on unchanged.
package enum NFCError: Failure, Equatable {
  /// A signal ended the wait.
  case interrupted

  // The port.

  /// The text does not have the form of libnfc's connection strings.
  case malformedConnection(String, reason: String)
  /// No reader was named, and libnfc finds none.
  case noReader
  case noSuchPort(path: String)
  /// The reader needs a serial line, but this is something else.
  case notATerminal(path: String)
  case notPermitted(path: String)
  /// Another program uses the port.
  case inUse(path: String)
  /// The port cannot be used for another reason.
  case unusablePort(SystemError)

  // The reader.

  /// libnfc cannot open the reader; the reason is unknown.
  case cannotOpen(connection: String)
  /// The port never answers.
  case silent(path: String, speed: Int)
  /// The port answers, but not as a PN532 does.
  case garbled(path: String, speed: Int)
  /// The reader answers at another speed.
  case wrongSpeed(path: String, speed: Int, right: Int)
  case unplugged(connection: String)
  /// libnfc returned this error code repeatedly.
  case failed(connection: String, code: Int8)
  /// The helper program with libnfc cannot be used, for example because libnfc has ended it repeatedly.
  case program(HelperProcess.Failure)

  // The tag.

  /// No tag appeared in time.
  case noTag
  /// There is a tag, but it does not answer properly.
  case noAnswer
  /// The tag was taken away in the middle, and did not return in time.
  case tagGone(TagUID)
  /// Another tag was presented instead.
  case otherTag(expected: TagUID, found: TagUID)
  /// According to its selection response, the tag is neither NFC Forum Type 2 nor Type 4.
  case unsupportedTag(sak: UInt8)
  /// The tag repeatedly refuses to write a page that should be writable.
  case refused(page: Int)
  /// The tag, whose chip is unknown, refused to write this page, before anything was changed.
  case protected(page: Int)
  /// The tag acknowledges writes, but does not store them.
  case ignored
  /// The tag makes dynamic messages, so its own digits would overwrite the written content.
  case dynamicMessages
  /// The tag, whose chip is unknown, gives another message at each reading or each activation.
  case changingMessage
  /// The tag, whose chip is unknown, has its UID in its message, as a tag that puts the UID there by itself.
  case mayShowUID
  /// This kind of tag does not support the operation.
  case unsupported(String)

  package var exitStatus: ExitStatus {
    switch self {
    case .interrupted: .failure
    case .malformedConnection: .configuration
    case .notPermitted: .noPermission
    case .tagGone, .noAnswer, .otherTag, .refused, .ignored: .inputOutput
    case .unsupportedTag, .unsupported, .dynamicMessages, .changingMessage, .mayShowUID, .protected: .badData
    case .noReader, .noSuchPort, .notATerminal, .inUse, .unusablePort, .cannotOpen, .silent, .garbled, .wrongSpeed,
      .unplugged, .failed, .program, .noTag:
      .unavailable
    }
  }

  package var hint: String? {
    switch self {
    case .tagGone: "hold it still, and run the command again"
    case .dynamicMessages: "use --sdm, which sets it up with keys of the vehicle's own, or another tag"
    case .changingMessage: "use another tag"
    case .mayShowUID: "use another tag; if the UID was only stored there, --replace-all erases it"
    case .interrupted, .malformedConnection, .noReader, .noSuchPort, .notATerminal, .notPermitted, .inUse,
      .unusablePort, .cannotOpen, .silent, .garbled, .wrongSpeed, .unplugged, .failed, .program, .noTag, .noAnswer,
      .otherTag, .unsupportedTag, .refused, .protected, .ignored, .unsupported:
      nil
    }
  }

  package var isInterruption: Bool { self == .interrupted }

  /// Whether an error concerns only one tag, so that another tag may work.
  package static func isOfTheTag(_ error: any Error) -> Bool {
    switch error {
    case is NDEFError, is NTAG424Error: true
    case NFCError.noAnswer, NFCError.tagGone, NFCError.otherTag, NFCError.unsupportedTag, NFCError.refused,
      NFCError.protected, NFCError.ignored, NFCError.dynamicMessages, NFCError.changingMessage, NFCError.mayShowUID,
      NFCError.unsupported:
      true
    default: false
    }
  }

  package var description: String {
    switch self {
    case .interrupted: "interrupted"
    case .malformedConnection(let text, let reason): "not a connection string of libnfc's: '\(text)': \(reason)"
    case .noReader: "there is no NFC reader that libnfc finds by itself; --nfc names one, as pn532_uart:/dev/ttyUSB0"
    case .noSuchPort(let path): "there is no \(path): is the reader plugged in?"
    case .notATerminal(let path): "\(path) is not a serial port"
    case .notPermitted(let path): "not permitted to use \(path); `ls -l \(path)` shows the group that may"
    case .inUse(let path): "\(path) is in use by another program; `fuser \(path)` says by which"
    case .unusablePort(let error): error.description
    case .cannotOpen(let connection): "cannot open \(connection): libnfc finds no reader there"
    case .silent(let path, let speed):
      "no reader answers at \(path), at \(speed) baud: is it wired up, and set to its serial mode?"
    case .garbled(let path, let speed):
      "what answers at \(path) is not a PN532 at \(speed) baud: another speed, or another device"
    case .wrongSpeed(let path, let speed, let right):
      "the reader at \(path) speaks at \(right) baud, not at \(speed): use pn532_uart:\(path):\(right)"
    case .unplugged(let connection): "lost \(connection): the reader was unplugged"
    case .failed(let connection, let code):
      "\(connection) does not work: libnfc says \(Self.meaning(of: code)) again and again"
    case .program(.ended(.signaled(let number))):
      "the reader's program ended (signal \(number)): what the reader answers makes libnfc fail"
    case .program(.ended(.exited(let status))): "the reader's program ended (status \(status))"
    case .program(.silent): "the reader's program does not answer"
    case .program(.malformed): "the reader's program is of another version than this one"
    case .program(.system(let error)): error.description
    case .program(.interrupted): "interrupted"
    case .noTag: "no tag came in time"
    case .noAnswer: "a tag is there, but it does not answer: hold it still, close to the reader"
    case .tagGone(let uid): "the tag \(uid) was taken away, and did not come back in time"
    case .otherTag(let expected, let found):
      "another tag came back, \(found) in place of \(expected); nothing was written to it"
    case .unsupportedTag(let sak): "not an NDEF tag: it is neither of Type 2 nor of Type 4 (SAK \(hexadecimal([sak])))"
    case .refused(let page): "the tag does not take what is written to page \(page)"
    case .protected(let page):
      "the tag refuses writes to page \(page), as with a password or a lock; nothing was changed"
    case .ignored: "the tag does not hold what is written to it"
    case .dynamicMessages:
      "the tag makes dynamic messages (SDM), which would overwrite the step's name; nothing was written"
    case .changingMessage:
      "the tag is a dynamic one of another system: it makes another message each time, with a counter or a code, and "
        + "would overwrite the step's name; nothing was written"
    case .mayShowUID:
      "the tag's message has its UID, which the tag may show in place of the step's name; nothing was written"
    case .unsupported(let reason): reason
    }
  }

  /// The error codes of nfc.h.
  private static func meaning(of code: Int8) -> String {
    switch code {
    case -1: "input or output error"
    case -3: "not supported"
    case -5: "overflow"
    case -6: "time is up"
    case -10: "tag released"
    case -20: "transmission error"
    case -90: "error of the chip"
    default: "error \(code)"
    }
  }
}
