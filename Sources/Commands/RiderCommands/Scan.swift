import ArgumentParser
import Bluetooth
import CommandParts
import Domain
import Encoding
import Ranging
import SystemIO
import Terminal

struct Scan: ContextCommand {
  static let configuration = CommandConfiguration(
    commandName: "scan",
    abstract: "Show every iBeacon that is heard: a table on a terminal, else each frame in a line.",
    usage: "stepctl scan <options>")

  @OptionGroup var radio: RadioOptions
  @OptionGroup var saving: SaveOptions
  @OptionGroup var playing: PlayingOptions
  @Option(
    name: .customLong("timeout"), parsing: .unconditional,
    help: ArgumentHelp(
      "End after this time on the radio's clock, as 10, 10s or 2m (default: never).", valueName: "seconds"))
  var given: TimeSpan?
  @OptionGroup var output: OutputOptions

  func run(in context: Context) throws {
    let console = output.console(context)
    let timeout = given?.seconds
    let interruption = try context.interruption()
    let spec = try context.settings(radio: radio.radio, timeout: given?.text).radioSpec()
    let view = LiveView(context, console)
    let trace = view == nil ? console.trace : nil
    let opened = try spec.open(interruption: interruption, tell: view?.note ?? console.note, trace: trace)
    let speed = spec.isReplay ? console.pace(playing.speed) : nil
    let radio = try saving.recorded(speed.map { PacedRadio(opened, speed: $0, interruption) } ?? opened)
    defer {
      radio.close()
      view?.close()
    }
    let end = timeout.map { UnixTime(microseconds: radio.start.microseconds + Int64($0 * 1e6)) }
    if let view {
      try draw(radio, spec, until: end, view, console)
    } else {
      try list(radio, until: end, console)
    }
  }

  private func list(_ radio: any Radio, until end: UnixTime?, _ console: Console) throws {
    while true {
      switch try radio.next(until: end) {
      case .heard(let advertisement):
        for beacon in advertisement.iBeacons {
          try console.isJSON
            ? console.result(Scan.json(advertisement, beacon)) : console.result(Scan.line(advertisement, beacon))
        }
      case .deadline, .ended:
        return
      }
    }
  }

  private func draw(
    _ radio: any Radio, _ spec: RadioSpec, until end: UnixTime?, _ view: LiveView, _ console: Console
  ) throws {
    var table = ScanTable()
    func show(at now: UnixTime) throws {
      let time = now.seconds(since: radio.start)
      let rows = table.rows(at: time)
      try view.show { size in
        ScanFrame(
          table, rows: rows, at: time, radio: spec.description, size: size, glyphs: view.glyphs, style: console.styled
        ).lines
      }
    }
    var next = radio.start
    while true {
      switch try radio.next(until: min(next, end ?? next)) {
      case .heard(let advertisement):
        table.hear(advertisement, at: advertisement.time.seconds(since: radio.start))
      case .deadline(let now):
        try show(at: now)
        if let end, now >= end { return }
        next = UnixTime(microseconds: now.microseconds + 500_000)
      case .ended(let now):
        return try show(at: now)
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
