import Domain
import FileFormats
import StepController

extension ControllerFile {
  enum InputsKey: String, TOMLKey {
    case enable, steps
  }

  fileprivate enum StepInputsKey: String, TOMLKey {
    case clear
    case endOpen = "end_open"
    case endClosed = "end_closed"
  }

  enum InterlockKey: String, TOMLKey {
    case standing, moving, lost
  }

  fileprivate enum InputKey: String, TOMLKey {
    case source
    case isActiveLow = "active_low"
    case debounce = "debounce_ms"
  }
}

extension Inputs {
  init(
    _ inputs: TOMLTable<ControllerFile.InputsKey>?, _ interlock: TOMLTable<ControllerFile.InterlockKey>?
  ) throws(ConfigurationError) {
    self.init()
    if let inputs {
      try add(.enable, .enable, in: inputs)
      for (step, table) in try inputs.stepTables(.steps, ControllerFile.StepInputsKey.self) {
        try add(.clear(step), .clear, in: table)
        try add(.endOpen(step), .endOpen, in: table)
        try add(.endClosed(step), .endClosed, in: table)
      }
    }
    guard let interlock else { return }
    try add(.standing, .standing, in: interlock)
    // Without this input the rest of the table has no effect.
    guard wirings[.standing] != nil else { throw interlock.missing(.standing) }
    self.interlock = Interlock(
      onMoving: try interlock.optional(.moving, .word(Interlock.OnMoving.allCases)) ?? .warn,
      countsLostAsMoving: try interlock.optional(.lost, .word(Lost.allCases)) != .standing)
  }

  private enum Lost: String, CaseIterable {
    case moving, standing
  }

  /// Adds the input of a key, if the key is there. The value is a source alone, or a table.
  private mutating func add<Key>(
    _ sensor: SensorID, _ key: Key, in table: TOMLTable<Key>
  ) throws(ConfigurationError) {
    let source = TOMLForm.inputSource(in: table.document, withSpeed: sensor == .standing)
    let wiring: InputWiring
    if table.isTable(key), let details = try table.table(key, ControllerFile.InputKey.self) {
      wiring = InputWiring(
        try details.required(.source, source), isActiveLow: try details.optional(.isActiveLow, .boolean) ?? false,
        debounce: try details.optional(.debounce, .integer(in: 0...5000)).map { Int64($0) })
      if case .speed = wiring.source, wiring.isActiveLow {
        throw details.error(.isActiveLow, "a speed has no level: leave this out")
      }
    } else {
      guard let found = try table.optional(key, source) else { return }
      wiring = InputWiring(found)
    }
    if let other = wirings.first(where: { $0.value.source == wiring.source }) {
      throw table.error(key, "\(wiring.source.text) is \(other.key.configurationKey) already")
    }
    wirings[sensor] = wiring
  }
}

extension TOMLForm<InputSource> {
  /// `gpio:pinctrl-rp1:3`, `gpio:/dev/gpiochip0:3`, `file:/run/vehicle/standing` or `obd:/dev/ttyUSB0`.
  ///
  /// - Parameter withSpeed: whether a speed is of use.
  fileprivate static func inputSource(in document: TOMLDocument, withSpeed: Bool) -> TOMLForm {
    let lines = #""gpio:LABEL:LINE", "gpio:/dev/CHIP:LINE""#
    let expectation =
      withSpeed ? #"\#(lines), "file:PATH", "obd:/dev/TTY" or "obd:tcp:HOST:PORT""# : #"\#(lines) or "file:PATH""#
    return TOMLForm(expectation: expectation) {
      guard let text = TOMLForm<String>.text.read($0), let colon = text.firstIndex(of: ":") else { return nil }
      let rest = text[text.index(after: colon)...]
      switch text[..<colon] {
      case "file":
        return rest.isEmpty || rest.hasSuffix("/") ? nil : .file(document.resolve(String(rest)))
      case "gpio":
        guard let end = rest.lastIndex(of: ":"), isChip(rest[..<end]) else { return nil }
        let number = rest[rest.index(after: end)...]
        guard let line = Int(number), "\(line)" == number, (0..<1024).contains(line) else { return nil }
        return .gpio(chip: String(rest[..<end]), line: line)
      case "obd" where withSpeed:
        return OBDAddress(rest).map { .speed($0) }
      default:
        return nil
      }
    }
  }

  /// A path, or a label: the kernel's have at most 31 bytes. `gpiochip0` is neither.
  private static func isChip(_ chip: Substring) -> Bool {
    chip.hasPrefix("/") || (1...31).contains(chip.utf8.count) && !chip.contains("/") && !chip.hasPrefix("gpiochip")
  }
}

extension InputSource {
  /// As written in the file.
  package var text: String {
    switch self {
    case .gpio(let chip, let line): "gpio:\(chip):\(line)"
    case .file(let path): "file:\(path)"
    case .speed(let address): "obd:\(address.text)"
    }
  }
}

extension SensorID {
  /// The key in the file.
  fileprivate var configurationKey: String {
    switch self {
    case .clear(let step): "[inputs.steps.\(step)] clear"
    case .endOpen(let step): "[inputs.steps.\(step)] end_open"
    case .endClosed(let step): "[inputs.steps.\(step)] end_closed"
    case .standing: "[interlock] standing"
    case .enable: "[inputs] enable"
    }
  }
}
