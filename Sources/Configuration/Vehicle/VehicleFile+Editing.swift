package import Domain

extension VehicleFile {
  /// Notes a step's measured power in the text of a vehicle file, in place of one that is there or behind the step's
  /// major. Nothing else changes: comments, order and line ends stay as their writer has them.
  ///
  /// - Parameter power: dBm at 1 m.
  /// - Throws: when the text is no vehicle file, has no such step, or is written in a way that this cannot edit.
  package static func setting(
    measuredPower power: Int8, of id: StepID, in text: [UInt8], path: String
  ) throws(ConfigurationError) -> [UInt8] {
    try edit(.measuredPower, of: id, in: text, path: path) { step in
      step.measuredPower = power
      return "\(power)"
    }
  }

  /// Notes, in the same way, what a step's iBeacon always sends as its minor.
  package static func setting(
    minor: UInt16, of id: StepID, in text: [UInt8], path: String
  ) throws(ConfigurationError) -> [UInt8] {
    try edit(.minor, of: id, in: text, path: path) { step in
      step.minor = minor
      return "\(minor)"
    }
  }

  /// Adds, in the same way, a tag to those of a step. One that is there already changes nothing.
  ///
  /// - Throws: also when the tag is another step's.
  package static func adding(
    tag: TagUID, to id: StepID, in text: [UInt8], path: String
  ) throws(ConfigurationError) -> [UInt8] {
    try edit(.tags, of: id, in: text, path: path) { step in
      if !step.tags.contains(tag) { step.tags.append(tag) }
      return "[" + step.tags.map { TOMLText.quoted($0.description) }.joined(separator: ", ") + "]"
    }
  }

  /// - Parameter change: changes the step, and returns the key's new value as it is to be written.
  private static func edit(
    _ key: StepKey, of id: StepID, in text: [UInt8], path: String, _ change: (inout Step) -> String
  ) throws(ConfigurationError) -> [UInt8] {
    let document = try TOMLDocument(parsing: text, path: path)
    let before = try VehicleFile(document)
    guard let index = before.vehicle.steps.firstIndex(where: { $0.id == id }) else {
      throw ConfigurationError(path, "there is no longer a step \(TOMLText.quoted(id.description))")
    }
    var steps = before.vehicle.steps
    let value = change(&steps[index])
    if steps[index] == before.vehicle.steps[index] { return text }
    let step = try TOMLTable<Key>(document).tables(.steps, StepKey.self)[index]

    // The parser tells lines, not columns. So whatever the line may mean is tried, and what counts is that the whole
    // file, read again, says what it said before, and the new value.
    let candidates =
      step.has(key)
      ? replacing(key.rawValue, with: value, in: text, line: step.line(of: key))
      : inserting("\(key.rawValue) = \(value)", behind: .major, in: text, line: step.line(of: .major))
    var expected = before
    do throws(Vehicle.Problem) {
      expected.vehicle = try Vehicle(name: before.vehicle.name, uuid: before.vehicle.uuid, steps: steps)
    } catch {
      // Of all that makes steps ambiguous, only a tag can have changed.
      throw step.error("\(TOMLText.key(key.rawValue)): \(value) has a tag of another step in it")
    }
    for candidate in candidates where (try? VehicleFile(parsing: candidate, path: path)) == expected {
      return candidate
    }
    throw step.error("cannot be edited as it is written; give each key a line of its own, without escapes")
  }

  /// The text with another value of a key, for each place in a line where the key may stand.
  private static func replacing(_ key: String, with value: String, in text: [UInt8], line: Int?) -> [[UInt8]] {
    values(of: key, in: text, line: line).map { text.replacing($0, with: Array(value.utf8)) }
  }

  /// The text with an entry more, on a line of its own or in an inline table.
  private static func inserting(_ entry: String, behind key: StepKey, in text: [UInt8], line: Int?) -> [[UInt8]] {
    let range = self.line(line, in: text)
    let indentation = text[range].prefix { $0 == 0x20 || $0 == 0x09 }
    let lineEnd: [UInt8] = text[range].last == 0x0D ? [0x0D, 0x0A] : [0x0A]
    // A line's end is not in `range`, only the carriage return of one that has it.
    let end = range.upperBound - (lineEnd.count - 1)
    let ownLine = text.replacing(end..<end, with: lineEnd + indentation + Array(entry.utf8))
    return [ownLine]
      + values(of: key.rawValue, in: text, line: line).map {
        text.replacing($0.upperBound..<$0.upperBound, with: Array(", \(entry)".utf8))
      }
  }

  /// Where the bytes of a line are, from 1, without its line feed.
  private static func line(_ number: Int?, in text: [UInt8]) -> Range<Int> {
    var start = 0
    for _ in 1..<max(number ?? 1, 1) {
      start = (text[start...].firstIndex(of: 0x0A) ?? text.count - 1) + 1
    }
    return start..<(text[start...].firstIndex(of: 0x0A) ?? text.count)
  }

  /// Where in a line a key may have its values: `key = VALUE`, `"key" = VALUE`.
  private static func values(of key: String, in text: [UInt8], line: Int?) -> [Range<Int>] {
    let line = self.line(line, in: text)
    let key = Array(key.utf8)
    var found: [Range<Int>] = []
    var start = line.lowerBound
    while start + key.count < line.upperBound {
      defer { start += 1 }
      guard text[start..<line.upperBound].starts(with: key) else { continue }
      // A quotation mark, blanks, the equals sign, blanks.
      let rest = text[(start + key.count)..<line.upperBound]
      let value = rest.drop { [0x22, 0x27, 0x20, 0x09, 0x3D].contains($0) }
      guard rest[..<value.startIndex].contains(0x3D) else { continue }
      if value.first == 0x5B {
        // An array ends at one of the brackets.
        found += value.indices.filter { value[$0] == 0x5D }.map { value.startIndex..<($0 + 1) }
      } else {
        let end = value.firstIndex { [0x20, 0x09, 0x0D, 0x2C, 0x7D, 0x23].contains($0) } ?? value.endIndex
        found.append(value.startIndex..<end)
      }
    }
    return found
  }
}

extension [UInt8] {
  fileprivate func replacing(_ range: Range<Int>, with bytes: [UInt8]) -> [UInt8] {
    self[..<range.lowerBound] + bytes + self[range.upperBound...]
  }
}
