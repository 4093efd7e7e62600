/// A value in a TOML document.
enum TOMLValue: Equatable, Sendable {
  case string(String)
  case integer(Int64)
  case float(Double)
  case boolean(Bool)
  case dateOrTime
  case array([TOMLValue])
  /// What is in it is read through a `TOMLTable`.
  case table

  /// The value as an error shows it: short, and on one line whatever it holds.
  var description: String {
    switch self {
    case .string(let text):
      text.count <= 40 ? TOMLText.quoted(text) : TOMLText.quoted(text.prefix(40)) + "…"
    case .integer(let value): String(value)
    case .float(let value): TOMLText.number(value)
    case .boolean(let value): String(value)
    case .dateOrTime: "a date or time"
    case .array(let values): values.isEmpty ? "an empty array" : "an array"
    case .table: "a table"
    }
  }
}
