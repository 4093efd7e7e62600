import Encoding
package import Tags
package import Domain
package import SystemIO

/// Why a reader or a tag cannot be used.
package enum NFCError: Error, Equatable, CustomStringConvertible {
  /// A signal ended the wait.
  case interrupted

  // The port.

  /// What was given is no connection string of libnfc's.
  case malformedConnection(String, reason: String)
  /// No reader was named, and libnfc knows of none.
  case noReader
  case noSuchPort(path: String)
  /// The reader is connected by a serial line, and this is none.
  case notATerminal(path: String)
  case notPermitted(path: String)
  /// Another program uses the port.
  case inUse(path: String)
  case port(SystemError)

  // The reader.

  /// libnfc cannot open the reader, and nothing more is known.
  case cannotOpen(connection: String)
  /// Nothing comes from the port, whatever is sent.
  case silent(path: String, speed: Int)
  /// Something comes from the port, but not what a PN532 answers.
  case garbled(path: String, speed: Int)
  /// The reader answers at another speed.
  case wrongSpeed(path: String, speed: Int, right: Int)
  case unplugged(connection: String)
  /// An error code of libnfc's, again and again.
  case failed(connection: String, code: Int8)
  /// libnfc has ended its process, again and again.
  case programEnded(ChildProcess.Ending)
  /// The reader's program does not answer, or not what it should.
  case programUnusable(reason: String)
  /// It answers something else than it was asked.
  static let unexpected = NFCError.programUnusable(reason: "is of another version than this one")
  case system(SystemError)

  // The tag.

  /// No tag came in time.
  case noTag
  /// A tag is there, and does not answer as one.
  case noAnswer
  /// The tag was taken away in the middle, and did not come back in time.
  case tagGone(TagUID)
  /// Another tag came back.
  case otherTag(expected: TagUID, found: TagUID)
  /// Neither of the types 2 and 4 of the NFC Forum, by its answer to the selection.
  case unsupportedTag(sak: UInt8)
  /// The tag's memory or message is not what it should be, or cannot be made so.
  case content(NDEFError)
  /// The tag's secure messaging did not go well.
  case dynamicTag(NTAG424Error)
  /// The tag refuses again and again what it should allow.
  case refused(page: Int)
  /// What this kind of tag cannot do.
  case unsupported(String)

  /// Whether it is about one tag, and another may be well.
  package var isOfTheTag: Bool {
    switch self {
    case .noAnswer, .tagGone, .otherTag, .unsupportedTag, .content, .dynamicTag, .refused, .unsupported:
      true
    default: false
    }
  }

  package var description: String {
    switch self {
    case .interrupted:
      "interrupted"
    case .malformedConnection(let text, let reason):
      "not a connection string of libnfc's: '\(text)': \(reason)"
    case .noReader:
      "there is no NFC reader that libnfc finds by itself; --nfc names one, as pn532_uart:/dev/ttyUSB0"
    case .noSuchPort(let path):
      "there is no \(path): is the reader plugged in?"
    case .notATerminal(let path):
      "\(path) is not a serial port"
    case .notPermitted(let path):
      "not permitted to use \(path); `ls -l \(path)` shows the group that may"
    case .inUse(let path):
      "\(path) is in use by another program; `fuser \(path)` says by which"
    case .port(let error):
      error.description
    case .cannotOpen(let connection):
      "cannot open \(connection): libnfc finds no reader there"
    case .silent(let path, let speed):
      "no reader answers at \(path), at \(speed) baud: is it wired up, and set to its serial mode?"
    case .garbled(let path, let speed):
      "what answers at \(path) is not a PN532 at \(speed) baud: another speed, or another device"
    case .wrongSpeed(let path, let speed, let right):
      "the reader at \(path) speaks at \(right) baud, not at \(speed): use pn532_uart:\(path):\(right)"
    case .unplugged(let connection):
      "lost \(connection): the reader was unplugged"
    case .failed(let connection, let code):
      "\(connection) does not work: libnfc says \(Self.meaning(of: code)) again and again"
    case .programEnded(.signaled(let number)):
      "the reader's program ended (signal \(number)): what the reader answers makes libnfc fail"
    case .programEnded(.exited(let status)):
      "the reader's program ended (status \(status))"
    case .programUnusable(let reason):
      "the reader's program \(reason)"
    case .system(let error):
      error.description
    case .noTag:
      "no tag came in time"
    case .noAnswer:
      "a tag is there, but it does not answer: hold it still, close to the reader"
    case .tagGone(let uid):
      "the tag \(uid) was taken away, and did not come back in time"
    case .otherTag(let expected, let found):
      "another tag came back, \(found) in place of \(expected); nothing was written to it"
    case .unsupportedTag(let sak):
      "not an NDEF tag: it is neither of Type 2 nor of Type 4 (SAK \(hexadecimal([sak])))"
    case .content(let error):
      error.description
    case .dynamicTag(let error):
      error.description
    case .refused(let page):
      "the tag does not take what is written to page \(page)"
    case .unsupported(let reason):
      reason
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
