import ArgumentParser
import Bluetooth
import Configuration
import Domain
import Encoding
import Ranging
import SystemIO
import Terminal

struct Scan: ContextCommand {
  static let configuration = CommandConfiguration(
    abstract: "Show every iBeacon that is heard: a table on a terminal, else each frame in a line.",
    usage: "stepctl scan <options>")

  @OptionGroup var radio: RadioOptions
  @OptionGroup var saving: SaveOptions
  @Option(help: ArgumentHelp("End after this time on the radio's clock (default: never).", valueName: "seconds"))
  var timeout: Double?
  @OptionGroup var output: OutputOptions

  func run(in context: Context) throws {
    let console = output.console(context)
    let interruption = try context.interruption()
    let settings = try context.settings(radio: radio.radio, timeout: timeout)
    let spec = try settings.radioSpec()
    // What the radio has to tell would be drawn over: it is told when the terminal is given back.
    var view: ScanView?
    var notices: [String] = []
    defer { notices.forEach(console.note) }
    let opened = try spec.open(interruption: interruption) { view == nil ? console.note($0) : notices.append($0) }
    let radio = try saving.recorded(opened)
    defer { radio.close() }
    let end = timeout.map { UnixTime(microseconds: radio.start.microseconds + Int64($0 * 1e6)) }

    // Of a replay only the last table would be seen.
    view = spec.isReplay ? nil : ScanView(console, context, radio: spec.description)
    if let view {
      try watch(radio, until: end, view)
    } else {
      try list(radio, until: end, console)
    }
  }

  private func list(_ radio: any Radio, until end: UnixTime?, _ console: Console) throws {
    while true {
      switch try radio.next(until: end) {
      case .heard(let advertisement):
        guard let beacon = advertisement.iBeacon else { continue }
        try console.isJSON
          ? console.result(Scan.json(advertisement, beacon)) : console.result(Scan.line(advertisement, beacon))
      case .deadline, .ended:
        return
      }
    }
  }

  private func watch(_ radio: any Radio, until end: UnixTime?, _ view: ScanView) throws {
    defer { view.close() }
    var table = ScanTable()
    var next = radio.start
    while true {
      switch try radio.next(until: min(next, end ?? next)) {
      case .heard(let advertisement):
        table.hear(advertisement, at: advertisement.time.seconds(since: radio.start))
      case .deadline(let now):
        try view.show(&table, at: now.seconds(since: radio.start))
        if let end, now >= end { return }
        next = UnixTime(microseconds: now.microseconds + 500_000)
      case .ended(let now):
        return try view.show(&table, at: now.seconds(since: radio.start))
      }
    }
  }

  static func json(_ advertisement: Advertisement, _ beacon: IBeacon) -> JSON {
    [
      "time_s": .number(Double(advertisement.time.microseconds) / 1e6),
      "address": .string(advertisement.address.description),
      "uuid": .string(beacon.uuid.description),
      "major": .integer(Int64(beacon.major)),
      "minor": .integer(Int64(beacon.minor)),
      "measured_power_dbm": .integer(Int64(beacon.measuredPower)),
      "rssi_dbm": advertisement.rssi.map { .integer(Int64($0)) } ?? .null,
    ]
  }

  /// At most 80 columns.
  private static func line(_ advertisement: Advertisement, _ beacon: IBeacon) -> String {
    let numbers = [
      "\(beacon.major)".aligned(to: 5, right: true), "\(beacon.minor)".aligned(to: 5, right: true),
      (advertisement.rssi.map { "\($0) dBm" } ?? "no RSSI").aligned(to: 8, right: true),
      "\(beacon.measuredPower)".aligned(to: 4, right: true),
    ]
    return "\(timeOfDay(advertisement.time))  \(beacon.uuid)  \(numbers.joined(separator: "  "))"
  }
}
