/// Names one call of `MQTTConnection.publish`, for as long as the process lives.
package struct PublishID: Hashable, Comparable, Sendable {
  let number: UInt64

  package init(_ number: UInt64) { self.number = number }

  package static func < (left: PublishID, right: PublishID) -> Bool { left.number < right.number }
}
