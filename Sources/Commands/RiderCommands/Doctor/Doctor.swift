import ArgumentParser
import Bluetooth
import CommandParts
import Domain
import Encoding
import SystemIO
import Terminal
import UserSettings

struct Doctor: ContextCommand {
  static let configuration = CommandConfiguration(
    commandName: "doctor",
    abstract: "Check everything that a command needs, and say what to type where it does not work.",
    usage: "stepctl doctor [<options>] [<area> ...]",
    discussion: """
      It looks at the vehicle's files and the token, connects to the broker, asks the controller, by Bluetooth as well \
      if the vehicle takes links, listens with each radio for three seconds, and tries reader and cameras. Nothing moves, and nothing is changed. Without a radio in \
      the settings it checks every adapter of this machine, directly (hci0) and through bluetoothd (bluez:hci0).
      """)

  enum Area: String, ExpressibleByArgument, CaseIterable {
    case vehicle, broker, controller, link, radio, reader, camera
  }

  @Argument(
    help: ArgumentHelp(
      "What to check: vehicle, broker, controller, link, radio, reader, camera (default: all).", valueName: "area"))
  var areas: [Area] = []

  @OptionGroup var vehicle: VehicleOptions
  @Option(
    help: ArgumentHelp("The radio to check (default: the setting, or all of this machine).", valueName: "spec"),
    completion: LiveCompletion.radio)
  var radio: String?

  @OptionGroup var reader: NFCOptions
  @OptionGroup var timeout: TimeoutOptions
  @OptionGroup var output: OutputOptions

  func run(in context: Context) throws {
    let console = output.console(context)
    let interruption = try context.interruption()
    let settings = try context.settings(
      vehicle: vehicle.vehicle, radio: radio, nfc: reader.nfc, timeout: timeout.typed)
    let wanted = Set(areas.isEmpty ? Area.allCases : areas)
    let progress = console.progress
    defer { progress.clear() }
    func tell(_ examination: Examination) throws {
      progress.clear()
      if !console.isJSON { for line in examination.lines(style: console.styled) { try console.result(line) } }
    }

    var parts: [Examination] = []
    if !wanted.isDisjoint(with: [.vehicle, .broker, .controller, .link]) {
      let examination = VehicleExamination(settings, context, interruption)
      let found = try examination.parts(
        withConnection: !wanted.isDisjoint(with: [.broker, .controller]), withHardware: wanted.contains(.controller),
        link: areas.contains(.link) ? .yes : areas.isEmpty ? .maybe : .no, showing: progress)
      // Without a vehicle there is no broker to check, and the report says so.
      for (area, part) in found where wanted.contains(area) || found.count == 1 {
        try tell(part)
        parts.append(part)
      }
    }
    var radios: [RadioReport] = []
    if wanted.contains(.radio) {
      for spec in settings.radio.origin == .standard ? Self.adapters : [try settings.radioSpec()] {
        progress.show("\(spec): listening")
        let report = try RadioExamination(spec, interruption, trace: console.trace).report()
        try tell(report.examination)
        radios.append(report)
      }
    }
    for (area, examine) in [(Area.reader, DeviceExamination.reader), (.camera, DeviceExamination.cameras)]
    where wanted.contains(area) {
      progress.show("\(area.rawValue)")
      let part = try examine(settings, interruption)
      try tell(part)
      parts.append(part)
    }
    try conclude(parts, radios, console)
  }

  /// If there is no adapter, the first one is checked anyway, because the check says what is missing.
  private static var adapters: [RadioSpec] {
    let numbers = Adapter.all().map(\.number)
    return numbers.isEmpty ? [.hci(0)] : numbers.flatMap { [.hci($0), .bluez($0)] }
  }

  private func conclude(_ parts: [Examination], _ radios: [RadioReport], _ console: Console) throws {
    // One working radio is enough.
    let isDeaf = !radios.isEmpty && radios.allSatisfy { $0.failure != nil }
    let broken = parts.filter { $0.state == .broken } + (isDeaf ? radios.map(\.examination) : [])
    let noted =
      parts.filter { $0.state == .warning } + radios.map(\.examination).filter { !isDeaf && $0.state != .good }
    let state: Examination.State = broken.isEmpty ? noted.isEmpty ? .good : .warning : .broken
    let status = broken.first?.exitStatus ?? .done
    if console.isJSON {
      try console.result([
        "state": .string(state.rawValue), "usable": .bool(radios.contains { $0.failure == nil }),
        "exit": .integer(Int64(status.rawValue)),
        "areas": .array(parts.map { .object([.init("area", .string($0.title))] + $0.members) }),
        "radios": .array(radios.map(\.json)),
      ])
    } else {
      func list(_ word: String, _ parts: [Examination]) -> [String] {
        parts.isEmpty ? [] : ["\(word): \(parts.map(\.title).joined(separator: ", "))"]
      }
      if broken.isEmpty, !noted.isEmpty {
        // A radio that cannot be used is a warning as a whole, because another one can.
        let names = noted.flatMap { part in
          part.state == .broken ? [part.title] : part.findings.filter { $0.state == .warning }.map(\.subject)
        }
        let distinct = names.enumerated().filter { names.firstIndex(of: $1) == $0 }.map(\.element)
        let count = distinct.count == 1 ? "one warning" : "\(distinct.count) warnings"
        try console.result("works; \(count) (\(distinct.joined(separator: ", ")))")
      } else {
        let lines = list("broken", broken) + list("warning", noted)
        try console.result(lines.isEmpty ? "all is well" : lines.joined(separator: "; "))
      }
    }
    if status != .done { throw Ended(status) }
  }
}
