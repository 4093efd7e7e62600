package import Domain
package import Encoding

/// Reads each member of an object once; `end` then fails if any is left.
///
/// A member that version 1 does not know could change the meaning of a message, so it is refused, not skipped. Members
/// that a reader may skip are in `ext`. If `crit` names one of them, the reader must not skip it (as in RFC 7515
/// 4.1.11).
package struct ObjectReader {
  private var rest: [JSON.Member]
  /// The value of `ext`, an object; nil if there is none.
  package let extensions: JSON?

  /// - Parameter isExtensible: whether the object may have `ext` and `crit`. Labels and the objects of other standards
  ///   may not.
  /// - Throws: `malformed`, also if `crit` names an extension that this version does not understand.
  package init(_ value: JSON, of what: String, isExtensible: Bool = true) throws(ProtocolError) {
    guard let members = value.object else { throw .malformed("\(what) is not an object") }
    rest = members
    guard isExtensible else {
      extensions = nil
      return
    }
    let extensions = members.first { identical($0.name, "ext") }?.value
    let present = extensions?.object ?? []
    self.extensions = extensions
    rest.removeAll { identical($0.name, "ext") }
    guard extensions == nil || extensions?.object != nil else { throw .malformed("ext is not an object") }
    let critical = try takeIfPresent("crit", "a list of members of ext, each once") { value -> [String]? in
      guard let names = value.array?.compactMap(\.string), names.count == value.array?.count, !names.isEmpty,
        Set(names.map { Array($0.utf8) }).count == names.count,
        names.allSatisfy({ name in present.contains { identical($0.name, name) } })
      else { return nil }
      return names
    }
    // Version 1 understands no extension.
    if let name = critical?.first {
      throw .malformed("\(what) takes a newer version: \(ObjectReader.shown(name)) must be understood")
    }
  }

  package mutating func take<Value>(_ name: String, _ expected: String, _ read: (JSON) -> Value?) throws(ProtocolError)
    -> Value
  {
    guard let value = try takeIfPresent(name, expected, read) else { throw .malformed("\(name) is missing") }
    return value
  }

  package mutating func takeIfPresent<Value>(
    _ name: String, _ expected: String, _ read: (JSON) -> Value?
  ) throws(ProtocolError) -> Value? {
    guard let index = rest.firstIndex(where: { identical($0.name, name) }) else { return nil }
    guard let result = read(rest.remove(at: index).value) else { throw .malformed("\(name) is not \(expected)") }
    return result
  }

  package mutating func string(_ name: String) throws(ProtocolError) -> String {
    try take(name, "a string") { $0.string }
  }

  package mutating func bool(_ name: String) throws(ProtocolError) -> Bool {
    try take(name, "true or false") { $0.bool }
  }

  /// A member that must have this value.
  package mutating func constant(_ name: String, _ value: String) throws(ProtocolError) {
    _ = try take(name, value) { $0.string.flatMap { identical($0, value) ? $0 : nil } }
  }

  /// A member that is an object, which another reader will read.
  package mutating func objectIfPresent(_ name: String) throws(ProtocolError) -> JSON? {
    try takeIfPresent(name, "an object") { $0.object == nil ? nil : $0 }
  }

  /// Base64url of exactly `count` bytes.
  package mutating func bytes(_ name: String, count: Int) throws(ProtocolError) -> [UInt8] {
    try take(name, "base64url of \(count) bytes") { ObjectReader.bytes($0, count: count) }
  }

  package mutating func bytesIfPresent(_ name: String, count: Int) throws(ProtocolError) -> [UInt8]? {
    try takeIfPresent(name, "base64url of \(count) bytes") { ObjectReader.bytes($0, count: count) }
  }

  package mutating func wordIfPresent(_ name: String) throws(ProtocolError) -> String? {
    try takeIfPresent(name, "a word") { $0.string.flatMap { isWord($0) ? $0 : nil } }
  }

  package mutating func countIfPresent(_ name: String) throws(ProtocolError) -> Int64? {
    try takeIfPresent(name, "a whole number", ObjectReader.count)
  }

  /// A whole number of milliseconds or seconds. The protocol has no negative times.
  package mutating func count(_ name: String) throws(ProtocolError) -> Int64 {
    try take(name, "a whole number", ObjectReader.count)
  }

  package mutating func word<Word: RawRepresentable>(
    _ name: String, _ type: Word.Type
  ) throws(ProtocolError) -> Word where Word.RawValue == String {
    try take(name, "one of its words") { $0.string.flatMap(Word.init(exactly:)) }
  }

  /// A word from a list that later versions may extend.
  package mutating func openWord<Word: OpenWord>(_ name: String, _ type: Word.Type) throws(ProtocolError) -> Word {
    try take(name, "a word", ObjectReader.openWord)
  }

  package mutating func openWordIfPresent<Word: OpenWord>(_ name: String, _ type: Word.Type) throws(ProtocolError)
    -> Word?
  {
    try takeIfPresent(name, "a word", ObjectReader.openWord)
  }

  /// A word in `ext`; nil if it is missing.
  package func extensionWord<Word: OpenWord>(_ name: String, _ type: Word.Type) throws(ProtocolError) -> Word? {
    guard let value = extensions?[name] else { return nil }
    guard let word = Self.openWord(value) as Word? else { throw .malformed("\(name) is not a word") }
    return word
  }

  private static func openWord<Word: OpenWord>(_ value: JSON) -> Word? { value.string.flatMap(Word.init(rawValue:)) }

  /// Lower case only, so that each vehicle has one spelling.
  package mutating func uuid(_ name: String) throws(ProtocolError) -> UUID {
    try take(name, "a UUID in lower case") { value in
      value.string.flatMap { text in UUID(text).flatMap { identical($0.description, text) ? $0 : nil } }
    }
  }

  package mutating func step(_ name: String) throws(ProtocolError) -> StepID {
    try take(name, "the id of a step") { $0.string.flatMap { StepID($0) } }
  }

  package func end() throws(ProtocolError) {
    if let member = rest.first {
      throw .malformed("\(ObjectReader.shown(member.name)) is not a member that version 1 knows")
    }
  }

  /// A name from outside, shortened for a log line.
  private static func shown(_ name: String) -> String { String(name.unicodeScalars.prefix(32)) }

  private static func bytes(_ value: JSON, count: Int) -> [UInt8]? {
    value.string.flatMap { Base64URL.decode($0) }.flatMap { $0.count == count ? $0 : nil }
  }

  private static func count(_ value: JSON) -> Int64? {
    // Below 2^53, so that every JSON library reads the same number (RFC 7493 2.2).
    value.integer.flatMap { (0..<(1 << 53)).contains($0) ? $0 : nil }
  }
}

extension RawRepresentable where RawValue == String {
  /// The case with exactly this text: Swift would also match a canonically equivalent one.
  package init?(exactly text: String) {
    self.init(rawValue: text)
    guard identical(rawValue, text) else { return nil }
  }
}
