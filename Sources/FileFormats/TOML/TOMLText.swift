import Encoding

/// The written forms of TOML (TOML 1.0.0).
package enum TOMLText {
  /// A basic string. C1 controls are escaped too: TOML allows them, but terminals obey them.
  package static func quoted(_ text: some StringProtocol) -> String {
    var result = "\""
    for scalar in text.unicodeScalars {
      switch scalar {
      case "\"", "\\":
        result += "\\"
        result.unicodeScalars.append(scalar)
      case "\n": result += "\\n"
      case "\r": result += "\\r"
      case "\t": result += "\\t"
      case _ where isControl(scalar):
        let digits = String(scalar.value, radix: 16)
        result += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
      default: result.unicodeScalars.append(scalar)
      }
    }
    return result + "\""
  }

  /// A key: bare where TOML allows it.
  package static func key(_ text: String) -> String {
    let isBare = text.utf8.allSatisfy { $0.isASCIIAlphanumeric || "-_".utf8.contains($0) }
    return isBare && !text.isEmpty ? text : quoted(text)
  }

  /// A number in its short form: `5`, not `5.0`. Reading a float accepts both.
  package static func number(_ value: Double) -> String {
    let text = "\(value)"
    return text.hasSuffix(".0") ? String(text.dropLast(2)) : text
  }

  /// Milliseconds as seconds.
  package static func seconds(_ milliseconds: Int64) -> String { number(Double(milliseconds) / 1000) }

  package static func isControl(_ scalar: Unicode.Scalar) -> Bool {
    scalar.value < 0x20 || (0x7F...0x9F).contains(scalar.value)
  }
}
