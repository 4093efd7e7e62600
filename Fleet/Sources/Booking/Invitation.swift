package import Domain

/// What the operator expects of a vehicle that has not joined yet: it brings the code, and gets the name.
package struct Invitation: Sendable, Equatable {
  package let name: String
  /// Unix time.
  package let expires: Int64

  /// Lifetime of a code in seconds: a day, enough to go to the vehicle.
  package static let lifetime: Int64 = 86_400

  package init(name: String, expires: Int64) { (self.name, self.expires) = (name, expires) }

  /// An invitation that begins now.
  package init(to name: String, now: Int64) { self.init(name: name, expires: now + Self.lifetime) }

  /// Checks the name that an operator gives to a vehicle.
  package static func checkName(_ name: String) throws(FleetRefusal) {
    guard Vehicle.isName(name) else { throw .badName }
  }

  /// A new code: 60 random bits, without letters that look alike.
  package static func newCode(using generator: inout some RandomNumberGenerator) -> String {
    let letters = Array("ABCDEFGHJKLMNPQRSTUVWXYZ23456789")
    let text = (0..<12).map { _ in letters.randomElement(using: &generator)! }
    return "\(String(text[0..<4]))-\(String(text[4..<8]))-\(String(text[8..<12]))"
  }

  /// The code that somebody means, who may leave the hyphens out and type small letters.
  package static func code(meantBy text: String) -> String {
    let letters = Array(text.uppercased().filter { $0 != "-" && $0 != " " })
    guard letters.count == 12 else { return text }
    return stride(from: 0, to: 12, by: 4).map { String(letters[$0..<$0 + 4]) }.joined(separator: "-")
  }

  /// The vehicle that joins with this invitation's code.
  ///
  /// - Parameter asked: the name that the vehicle asks for; nil for whichever it gets.
  package func vehicle(named asked: String?, id: UUID, steps: [Step]) throws(FleetRefusal) -> Vehicle {
    guard asked == nil || asked == name else { throw .otherName(name) }
    do { return try Vehicle(name: name, uuid: id, steps: steps) } catch { throw .sameSteps }
  }
}
