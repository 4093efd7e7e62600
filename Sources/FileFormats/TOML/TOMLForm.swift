package import Domain
import Encoding
package import StepProtocol

/// A form of a value in a file: how errors describe it, and how it is read.
package struct TOMLForm<Value> {
  /// The text after "expected": `a UUID`, `"left" or "right"`.
  package let expectation: String
  /// Returns nil for a value of another form.
  package let read: (TOMLValue) -> Value?
  /// The text after "found".
  package var describe: (TOMLValue) -> String

  package init(
    expectation: String, read: @escaping (TOMLValue) -> Value?,
    describe: @escaping (TOMLValue) -> String = \.description
  ) {
    self.expectation = expectation
    self.read = read
    self.describe = describe
  }

  /// A form of text.
  package static func text(_ expectation: String, _ read: @escaping (String) -> Value?) -> TOMLForm {
    TOMLForm(expectation: expectation) { if case .string(let text) = $0 { read(text) } else { nil } }
  }
}

extension TOMLForm<String> {
  /// Text without characters that control a terminal.
  package static var text: TOMLForm<String> {
    .text("non-empty text without control characters") {
      $0.isEmpty || $0.unicodeScalars.contains(where: TOMLText.isControl) ? nil : $0
    }
  }

  package static var vehicleName: TOMLForm<String> { .text(Vehicle.nameRule) { Vehicle.isName($0) ? $0 : nil } }

  /// The path of a file; a relative path starts at the folder of the document.
  package static func path(in document: TOMLDocument) -> TOMLForm<String> {
    TOMLForm(expectation: "the path of a file") { TOMLForm.text.read($0).map(document.resolve) }
  }
}

extension TOMLForm<UUID> {
  package static var uuid: TOMLForm<UUID> { .text("a UUID (8-4-4-4-12 hexadecimal digits)") { UUID($0) } }
}

extension TOMLForm<TopicPrefix> {
  package static var topic: TOMLForm<TopicPrefix> {
    .text(#"levels of letters, digits, ".", "-" and "_", joined by "/""#) { TopicPrefix($0) }
  }
}

extension TOMLForm<StepID> {
  package static var stepID: TOMLForm<StepID> { .text(#"1 to 32 of a-z, 0-9, "-" and "_""#) { StepID($0) } }
}

/// Public keys, 32 bytes as base64url without padding. Errors do not repeat the text, because it may be a misplaced
/// private key.
extension TOMLForm {
  fileprivate static func key(_ make: @escaping ([UInt8]) -> Value?) -> TOMLForm {
    TOMLForm(
      expectation: "32 bytes as base64url without padding (length 43)",
      read: {
        guard case .string(let text) = $0, let bytes = Base64URL.decode(text) else { return nil }
        return make(bytes)
      },
      describe: {
        guard case .string(let text) = $0 else { return $0.description }
        return Base64URL.decode(text)?.count == 32
          ? "32 bytes that are not a usable key" : "text of length \(text.count)"
      })
  }
}

extension TOMLForm<VerificationKey> {
  package static var verificationKey: TOMLForm<VerificationKey> { key { try? VerificationKey($0) } }
}

extension TOMLForm<EncryptionKey> {
  package static var encryptionKey: TOMLForm<EncryptionKey> { key { try? EncryptionKey($0) } }
}

extension TOMLForm<Bool> {
  package static var boolean: TOMLForm<Bool> {
    TOMLForm(expectation: "true or false") { if case .boolean(let value) = $0 { value } else { nil } }
  }
}

extension TOMLForm<[TagUID]> {
  /// At least one UID, without duplicates.
  package static var tagUIDs: TOMLForm<[TagUID]> {
    TOMLForm(expectation: "an array of different UIDs of 8, 14 or 20 hexadecimal digits") {
      guard case .array(let elements) = $0, !elements.isEmpty else { return nil }
      let uids = elements.compactMap { if case .string(let text) = $0 { TagUID(text) } else { nil } }
      return uids.count == elements.count && Set(uids).count == uids.count ? uids : nil
    }
  }
}

extension TOMLForm<Int> {
  package static func integer(in range: ClosedRange<Int>) -> TOMLForm<Int> {
    TOMLForm(expectation: "an integer from \(range.lowerBound) to \(range.upperBound)") {
      guard case .integer(let value) = $0, let value = Int(exactly: value), range.contains(value) else { return nil }
      return value
    }
  }
}

extension TOMLForm<UInt16> {
  package static var uint16: TOMLForm<UInt16> { uint16(from: 0) }
  /// A TCP port.
  package static var port: TOMLForm<UInt16> { uint16(from: 1) }

  private static func uint16(from lowest: UInt16) -> TOMLForm {
    TOMLForm(expectation: "an integer from \(lowest) to \(UInt16.max)") {
      guard case .integer(let value) = $0, let value = UInt16(exactly: value), value >= lowest else { return nil }
      return value
    }
  }
}

extension TOMLForm<Int8> {
  package static var int8: TOMLForm<Int8> {
    TOMLForm(expectation: "an integer from \(Int8.min) to \(Int8.max)") {
      if case .integer(let value) = $0 { Int8(exactly: value) } else { nil }
    }
  }
}

extension TOMLForm<Double> {
  /// A float or an integer.
  package static func number(in range: ClosedRange<Double>) -> TOMLForm<Double> {
    let expectation = "a number from \(TOMLText.number(range.lowerBound)) to \(TOMLText.number(range.upperBound))"
    return TOMLForm(expectation: expectation) {
      let number: Double
      switch $0 {
      case .integer(let value): number = Double(value)
      case .float(let value): number = value
      default: return nil
      }
      return range.contains(number) ? number : nil
    }
  }
}

extension TOMLForm<Int64> {
  /// A number of seconds, returned as milliseconds.
  package static func milliseconds(seconds range: ClosedRange<Double>) -> TOMLForm<Int64> {
    let seconds = TOMLForm<Double>.number(in: range)
    return TOMLForm(expectation: seconds.expectation) { seconds.read($0).map { Int64(($0 * 1000).rounded()) } }
  }
}

extension TOMLForm where Value: RawRepresentable<String> {
  /// One of the given words.
  package static func word(_ words: [Value]) -> TOMLForm {
    text(alternatives(words.map { TOMLText.quoted($0.rawValue) })) { text in words.first { $0.rawValue == text } }
  }
}

extension TOMLForm {
  /// At least one of the given words.
  package static func words<Word>(_ words: [Word]) -> TOMLForm
  where Value == Set<Word>, Word: RawRepresentable<String> {
    let word = TOMLForm<Word>.word(words)
    return TOMLForm(
      expectation: "an array of \(word.expectation)",
      read: {
        guard case .array(let elements) = $0, !elements.isEmpty else { return nil }
        let found = elements.compactMap(word.read)
        return found.count == elements.count ? Set(found) : nil
      },
      describe: {
        guard case .array(let elements) = $0, let wrong = elements.first(where: { word.read($0) == nil }) else {
          return $0.description
        }
        return "\(wrong.description) in it"
      })
  }
}
