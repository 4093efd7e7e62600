/// Names one call of `MQTTConnection.publish`, for as long as the process lives.
package struct PublishID: Hashable, Comparable, Sendable {
  let number: UInt64

  package static func < (left: PublishID, right: PublishID) -> Bool { left.number < right.number }
}
