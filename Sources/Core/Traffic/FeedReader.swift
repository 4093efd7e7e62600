public import Domain
package import Encoding
package import Geography

/// Where a feed's message violates FEED.md, and what was expected.
public struct FeedFlaw: Failure, Equatable {
  /// Such as `vehicles[3].speed.x`.
  public let place: String
  public let expected: String

  package init(_ place: String, _ expected: String) {
    self.place = place
    self.expected = "expected \(expected)"
  }

  package init(_ place: String, _ error: JSON.SyntaxError) {
    self.place = place
    expected = error.description
  }

  public var description: String { "the feed's \(place): \(expected)" }
  public var exitStatus: ExitStatus { .badData }
}

/// Reads an object in a feed's message. Its numbers may be strings.
package struct FeedReader {
  private let json: JSON
  private let outer: String
  private let name: String

  /// The range of clock times, seconds since 1970: up to the year 2100, so that arithmetic is exact enough.
  package static let times = 0.0...4_102_444_800

  /// - Parameters:
  ///   - outer: the object's name in errors or, if there is a `name`, the name of the object that contains it.
  package init(_ json: JSON, _ outer: String, name: String = "") {
    self.json = json
    self.outer = outer
    self.name = name
  }

  /// The object's name in errors. Errors are rare, so it is computed on demand.
  package var place: String { name.isEmpty ? outer : "\(outer).\(name)" }

  private func path(_ name: String) -> String { "\(place).\(name)" }

  package func has(_ name: String) -> Bool { json[name] != nil }

  package func member(_ name: String) throws(FeedFlaw) -> JSON {
    guard json.object != nil else { throw FeedFlaw(place, "an object") }
    guard let value = json[name] else { throw FeedFlaw(path(name), "a value") }
    return value
  }

  package func object(_ name: String) throws(FeedFlaw) -> FeedReader {
    let value = try member(name)
    guard value.object != nil else { throw FeedFlaw(path(name), "an object") }
    return FeedReader(value, place, name: name)
  }

  /// A name: 1 to 64 bytes of text, or an integer, which some publishers send.
  package func text(_ name: String) throws(FeedFlaw) -> String {
    switch try member(name) {
    case .string(let text) where (1...64).contains(text.utf8.count): return text
    case .integer(let number): return "\(number)"
    default: throw FeedFlaw(path(name), "1 to 64 bytes of text")
    }
  }

  /// `latitude` and `longitude`.
  package func coordinate() throws(FeedFlaw) -> Coordinate {
    let (latitude, longitude) = (
      try number("latitude", in: -90...90), try number("longitude", in: -180...180)
    )
    guard let place = Coordinate(latitude: latitude, longitude: longitude) else {
      throw FeedFlaw(path("latitude"), "a latitude from -90 to 90")
    }
    return place
  }

  package func flag(_ name: String) throws(FeedFlaw) -> Bool {
    guard let value = json[name] else { return false }
    guard let flag = value.bool else { throw FeedFlaw(path(name), "true or false") }
    return flag
  }

  package func number(_ name: String, in range: ClosedRange<Double>) throws(FeedFlaw) -> Double {
    let number: Double? =
      switch try number(name) {
      case .integer(let value): Double(value)
      case .number(let value): value
      default: nil
      }
    guard let number, range.contains(number) else {
      throw FeedFlaw(path(name), "a number from \(short(range.lowerBound)) to \(short(range.upperBound))")
    }
    return number
  }

  package func integer(_ name: String, in range: ClosedRange<Int64>) throws(FeedFlaw) -> Int64 {
    guard let number = try number(name).integer, range.contains(number) else {
      throw FeedFlaw(path(name), "an integer from \(range.lowerBound) to \(range.upperBound)")
    }
    return number
  }

  /// Seconds and nanoseconds, from two members. The string that holds both is not read: publishers forget to pad its
  /// nanoseconds with zeros.
  package func time() throws(FeedFlaw) -> UnixTime {
    let seconds = try integer("timestampSecs", in: Int64(Self.times.lowerBound)...Int64(Self.times.upperBound))
    let nanoseconds = try integer("timestampNsecs", in: 0...999_999_999)
    return UnixTime(microseconds: seconds * 1_000_000 + nanoseconds / 1000)
  }

  /// A number, or a string that contains one number and nothing else.
  private func number(_ name: String) throws(FeedFlaw) -> JSON {
    let value = try member(name)
    guard let text = value.string else { return value }
    let bytes = Array(text.utf8)
    guard bytes.count <= 32, bytes.allSatisfy({ $0 > 0x20 }), let number = try? JSON(parsing: bytes) else {
      return .null
    }
    return number
  }

  private func short(_ bound: Double) -> String { bound == bound.rounded() ? "\(Int64(bound))" : "\(bound)" }
}
