package import Tags

/// What a tag holds.
package struct TagReading: Sendable {
  package let target: NFCTarget
  /// The message, which is the empty one where a formatted tag holds none; or why it cannot be read.
  package let content: Result<NDEFMessage, NFCError>
}

extension NFCReader {
  /// How long a Type 4 tag has to say what it holds: it may take a second for each of its bytes. That is enough for
  /// 8 KB at 9600 baud.
  private static let longestReading = Duration.seconds(10)

  /// Waits for a tag, and reads it.
  ///
  /// - Parameters:
  ///   - deadline: for the tag to come, and for one that is taken away to come back.
  ///   - progress: is told now and then how much time is left.
  /// - Throws: `noTag` or `noAnswer` at the deadline. What is wrong with a tag's content is in the reading.
  package func readTag(
    until deadline: ContinuousClock.Instant, progress: (Duration?) -> Void = { _ in }
  ) throws(NFCError) -> TagReading {
    while true {
      let target = try waitForTag(until: deadline, progress: progress)
      do throws(NFCError) {
        return TagReading(target: target, content: .success(try message(of: target)))
      } catch {
        switch error {
        case .content, .unsupportedTag: return TagReading(target: target, content: .failure(error))
        case .noAnswer where deadline > .now: try rest()
        default: throw error
        }
      }
    }
  }

  /// Reads the tag that is selected.
  private func message(of target: NFCTarget) throws(NFCError) -> NDEFMessage {
    let bytes: [UInt8]
    switch try TagType(of: target) {
    case .type2:
      var memory = try Type2Session(self, target)
      bytes = try memory.finish { known, _ throws(NDEFError) in try Type2Layout.read(known) }.message
    case .type4: bytes = try Type4Session(self, until: .now + Self.longestReading).read().message
    }
    do throws(NDEFError) {
      return bytes.isEmpty ? NDEFMessage([]) : try NDEFMessage(parsing: bytes)
    } catch {
      throw .content(error)
    }
  }
}

/// How a tag is spoken to.
enum TagType {
  case type2, type4

  /// By the answer to the selection (NFC Forum, Digital Protocol 1.1, 4.8.2, SEL_RES).
  init(of target: NFCTarget) throws(NFCError) {
    if target.speaksISODEP {
      self = .type4
    } else if target.sak & 0x7F == 0 {
      self = .type2
    } else {
      throw .unsupportedTag(sak: target.sak)
    }
  }
}
