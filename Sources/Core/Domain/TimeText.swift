/// Reads a duration as people type it: a number of seconds, or a number and its unit (`500ms`, `10s`, `2m`, `8h`,
/// `7d`).
///
/// - Returns: seconds; nil for anything else.
package func seconds(typed text: String) -> Double? {
  let number = text.prefix { "0123456789.".contains($0) }
  let units = ["": 1, "ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86_400]
  guard let unit = units[String(text.dropFirst(number.count))], let value = Double(number) else { return nil }
  return value * unit
}
