package import Domain
package import FileFormats

extension VehicleFile {
  /// Writes a step's measured power into the text of a vehicle file: in place of the present value, else after the
  /// step's major. Comments, order and line ends stay as they are.
  ///
  /// - Parameter power: dBm at 1 m.
  /// - Throws: if the text is not a vehicle file, or has no such step.
  package static func setting(
    measuredPower power: Int8, of id: StepID, in text: [UInt8], path: String
  ) throws(ConfigurationError) -> [UInt8] {
    try edit(.measuredPower, of: id, in: text, path: path) { step in
      step.measuredPower = power
      return "\(power)"
    }
  }

  /// Writes, in the same way, the fixed minor of a step's iBeacon.
  package static func setting(
    minor: UInt16, of id: StepID, in text: [UInt8], path: String
  ) throws(ConfigurationError) -> [UInt8] {
    try edit(.minor, of: id, in: text, path: path) { step in
      step.minor = minor
      return "\(minor)"
    }
  }

  /// Adds, in the same way, a tag to a step. A tag that is already there changes nothing.
  ///
  /// - Throws: also if the tag belongs to another step.
  package static func adding(
    tag: TagUID, to id: StepID, in text: [UInt8], path: String
  ) throws(ConfigurationError) -> [UInt8] {
    try edit(.tags, of: id, in: text, path: path) { step in
      if !step.tags.contains(tag) { step.tags.append(tag) }
      return "[" + step.tags.map { TOMLText.quoted($0.description) }.joined(separator: ", ") + "]"
    }
  }

  /// - Parameter change: changes the step, and returns the key's new value as TOML.
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
    var expected = before
    do {
      expected.vehicle = try Vehicle(name: before.vehicle.name, uuid: before.vehicle.uuid, steps: steps)
    } catch {
      // Of the values that distinguish steps, only a tag can have changed.
      throw step.error("\(TOMLText.key(key.rawValue)): \(value) has a tag of another step in it")
    }

    var edited = text
    if let place = step.place(of: key) {
      edited.replaceSubrange(text.range(of: place), with: value.utf8)
    } else if let major = step.place(of: .major).map(text.range(of:)) {
      edited.insert("\(key.rawValue) = \(value)", behind: major, isInline: step.isInline)
    }
    // The test of success: when read again, the file has the old values and the new one.
    guard (try? VehicleFile(parsing: edited, path: path)) == expected else {
      throw step.error("cannot be edited as it is written; give each key a line of its own")
    }
    return edited
  }
}
