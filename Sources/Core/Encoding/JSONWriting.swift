extension JSON {
  /// The value without white space, members in their order, as UTF-8 text.
  public var text: String {
    var text = ""
    write(to: &text)
    return text
  }

  public var bytes: [UInt8] { Array(text.utf8) }

  private func write(to text: inout String) {
    switch self {
    case .null: text += "null"
    case .bool(let value): text += value ? "true" : "false"
    case .integer(let value): text += String(value)
    case .number(let value): text += value.isFinite ? "\(value)" : "null"
    case .string(let value): JSON.quote(value, into: &text)
    case .array(let values):
      text += "["
      for (index, value) in values.enumerated() {
        if index > 0 { text += "," }
        value.write(to: &text)
      }
      text += "]"
    case .object(let members):
      text += "{"
      for (index, member) in members.enumerated() {
        if index > 0 { text += "," }
        JSON.quote(member.name, into: &text)
        text += ":"
        member.value.write(to: &text)
      }
      text += "}"
    }
  }

  private static func quote(_ value: String, into text: inout String) {
    text += "\""
    defer { text += "\"" }
    // Mostly there is nothing to escape: the C1 controls, too, begin with a byte of their own, 0xC2.
    guard value.utf8.contains(where: { $0 < 0x20 || $0 == 0x22 || $0 == 0x5C || $0 == 0x7F || $0 == 0xC2 }) else {
      text += value
      return
    }
    for scalar in value.unicodeScalars {
      switch scalar {
      case "\"": text += "\\\""
      case "\\": text += "\\\\"
      case "\n": text += "\\n"
      case "\r": text += "\\r"
      case "\t": text += "\\t"
      // Control characters must be escaped (RFC 8259 7); DEL and C1 are as dangerous on a terminal.
      case "\u{0}"..."\u{1F}", "\u{7F}"..."\u{9F}":
        text += "\\u00" + hexadecimal([UInt8(scalar.value)]).lowercased()
      default: text.unicodeScalars.append(scalar)
      }
    }
  }
}
