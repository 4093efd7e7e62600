import Encoding

/// A controller's description of itself. It sends this to a rider's program that asks (PROTOCOL.md, section 5.3).
public struct About: Sendable, Equatable {
  /// The version of the controller's program: 1 to 64 characters of printable ASCII.
  public let version: String
  /// The controller's wall clock when it answered, milliseconds of Unix time.
  public let time: Int64

  public init(version: String, time: Int64) { (self.version, self.time) = (version, time) }

  init(_ value: JSON) throws(ProtocolError) {
    var members = try ObjectReader(value, of: "about")
    version = try members.take("version", "1 to 64 characters of printable ASCII") {
      $0.string.flatMap { text in
        (1...64).contains(text.utf8.count) && text.utf8.allSatisfy { (0x20...0x7E).contains($0) } ? text : nil
      }
    }
    time = try members.count("time")
    try members.end()
  }

  var json: JSON { ["version": .string(version), "time": .integer(time)] }
}
