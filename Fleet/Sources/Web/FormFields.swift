import Encoding
import HTTPTypes
package import Hummingbird

/// The fields of a form (application/x-www-form-urlencoded), at most 16, without repeated names.
package struct FormFields: Sendable, Equatable {
  private let values: [String: String]

  /// Reads the body of a request.
  ///
  /// - Returns: nil for a body that is no such form.
  /// - Throws: `Problem`: 415 for another media type, and as `Body.bytes(of:)`.
  package init?(of request: Request) async throws {
    guard Body.mediaType(of: request) == "application/x-www-form-urlencoded"
    else { throw Problem(.unsupportedMediaType, "media_type", "the body has to be application/x-www-form-urlencoded") }
    self.init(try await Body.bytes(of: request))
  }

  /// Nil for a text that is not such a form, and for a repeated name: two readers could take two values.
  package init?(_ bytes: [UInt8]) {
    var values: [String: String] = [:]
    let pairs = bytes.split(separator: UInt8(ascii: "&"))
    guard pairs.count <= 16 else { return nil }
    for pair in pairs {
      let parts = pair.split(separator: UInt8(ascii: "="), maxSplits: 1, omittingEmptySubsequences: false)
      guard let name = Self.decoded(parts[0]), let value = Self.decoded(parts.count == 2 ? parts[1] : []),
        values.updateValue(value, forKey: name) == nil
      else { return nil }
    }
    self.values = values
  }

  /// The value of a field; nil also for an empty one.
  package subscript(name: String) -> String? { values[name].flatMap { $0.isEmpty ? nil : $0 } }

  /// Whether the form has that field, empty or not.
  package func has(_ name: String) -> Bool { values[name] != nil }

  private static func decoded(_ text: ArraySlice<UInt8>) -> String? {
    var bytes: [UInt8] = []
    var rest = text
    while let byte = rest.popFirst() {
      switch byte {
      case UInt8(ascii: "+"): bytes.append(0x20)
      case UInt8(ascii: "%"):
        guard let high = rest.popFirst(), let low = rest.popFirst(),
          let value = hexadecimal(String(decoding: [high, low], as: UTF8.self))?.first
        else { return nil }
        bytes.append(value)
      default: bytes.append(byte)
      }
    }
    return String(validating: bytes, as: UTF8.self)
  }
}
