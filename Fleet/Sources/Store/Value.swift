/// What a column holds.
package enum Value: Hashable, Sendable {
  case null
  case integer(Int64)
  case text(String)
}
