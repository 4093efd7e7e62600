package import Domain
package import NDEF
package import SystemIO
package import Tags

/// The field of a reader, and the tag in it.
///
/// `NFCReader` is the real one; tests simulate one, with a tag that leaves or lies.
package protocol TagField: AnyObject {
  /// Looks for a tag once.
  ///
  /// - Returns: nil if there is no tag, or none that identifies itself properly.
  func select() throws -> NFCTarget?

  /// Sends a command to the last selected tag.
  func exchange(_ command: [UInt8], _ framing: NFCRequest.Framing) throws -> TagOutcome

  /// Takes the tag's power for a moment. Then it must be selected again.
  func restart() throws

  /// Waits for a moment between two looks at the field.
  ///
  /// - Throws: `NFCError.interrupted`.
  func rest() throws
}

/// The result of a command to a tag.
package enum TagOutcome: Equatable, Sendable {
  case answer([UInt8])
  /// The tag refused the command or is gone, or the reader failed and was reopened. It is unknown whether the command
  /// has reached the tag, and the tag must be selected again.
  case noAnswer
}

/// The content of a tag.
package struct TagContents: Sendable {
  package let target: NFCTarget
  /// The message, which is empty if a formatted tag has none; or why it cannot be read: an `NDEFError`, or
  /// `NFCError.unsupportedTag`.
  package let message: Result<NDEFMessage, any Error>
}

extension TagField {
  /// Waits for a tag.
  ///
  /// - Parameters:
  ///   - deadline: nil for none.
  ///   - progress: called now and then with the time that is left; nil without a deadline.
  /// - Throws: `NFCError.noTag` at the deadline.
  package func waitForTag(
    until deadline: Instant?, progress: (Duration?) -> Void = { _ in }
  ) throws -> NFCTarget {
    while true {
      if let target = try select() { return target }
      let left = deadline.map { Instant.now.duration(to: $0) }
      if let left, left <= .zero { throw NFCError.noTag }
      progress(left)
      try rest()
    }
  }

  /// Waits until this tag is gone, or another one is there.
  ///
  /// - Parameter deadline: nil for none.
  /// - Throws: `NFCError.noTag` at the deadline, if no other tag came.
  package func waitForRemoval(of uid: TagUID, until deadline: Instant?) throws {
    while try select()?.uid == uid {
      if let deadline, deadline <= .now { throw NFCError.noTag }
      try rest()
    }
  }

  /// Waits for a tag, and reads it.
  ///
  /// - Parameters:
  ///   - deadline: for the tag to appear, and to return if it is taken away.
  ///   - progress: called now and then with the time that is left.
  /// - Throws: `NFCError.noTag` or `NFCError.noAnswer` at the deadline, and errors of the reader. Errors of the tag's
  ///   content are in the result.
  package func readTag(
    until deadline: Instant, progress: (Duration?) -> Void = { _ in }
  ) throws -> TagContents {
    while true {
      let target = try waitForTag(until: deadline, progress: progress)
      do {
        return TagContents(target: target, message: .success(try message(of: target)))
      } catch let error as NDEFError {
        return TagContents(target: target, message: .failure(error))
      } catch NFCError.unsupportedTag(let sak) {
        return TagContents(target: target, message: .failure(NFCError.unsupportedTag(sak: sak)))
      } catch NFCError.noAnswer where deadline > .now {
        try rest()
      }
    }
  }

  /// Reads the selected tag.
  private func message(of target: NFCTarget) throws -> NDEFMessage {
    let bytes: [UInt8]
    switch try TagType(of: target) {
    case .type2:
      var session = try Type2Session(self, target)
      bytes = try session.finish { memory, _ in try Type2Layout.read(memory) }.message
    case .type4:
      // A Type 4 tag may take a second for each of its bytes. This is enough for 8 KB at 9600 baud.
      bytes = try Type4Session(self, until: .now + .seconds(10)).read().message
    }
    return bytes.isEmpty ? NDEFMessage([]) : try NDEFMessage(parsing: bytes)
  }
}

/// The kind of tag, which determines its protocol.
package enum TagType {
  case type2, type4

  /// From the selection response (NFC Forum, Digital Protocol 1.1, 4.8.2, SEL_RES).
  package init(of target: NFCTarget) throws(NFCError) {
    if target.speaksISODEP {
      self = .type4
    } else if target.sak & 0x7F == 0 {
      self = .type2
    } else {
      throw .unsupportedTag(sak: target.sak)
    }
  }
}
