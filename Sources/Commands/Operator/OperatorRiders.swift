import ArgumentParser
import Domain
import Encoding
import Provisioning
import StepProtocol
import Terminal

struct OperatorRiders: ContextCommand {
  static let configuration = CommandConfiguration(
    commandName: "riders", abstract: "List the riders and their devices.")

  @OptionGroup var place: PlaceOptions
  @OptionGroup var output: OutputOptions

  func run(in context: Context) throws {
    let console = output.console(context)
    let now = context.seconds
    let ledger = try place.place.ledger()
    for (rider, entries) in Dictionary(grouping: ledger.tokens, by: \.rider).sorted(by: { $0.key < $1.key }) {
      let good = entries.filter { [.valid, .notYetValid].contains(ledger.state(of: $0, at: now)) }
      var devices: [Thumbprint] = []
      for entry in entries where !devices.contains(entry.device) { devices.append(entry.device) }
      if console.isJSON {
        try console.result([
          "rider": .string(rider), "tokens": .integer(Int64(good.count)),
          "expires": good.map(\.expires).max().map { .integer($0) } ?? .null,
          "device_keys": .array(devices.map { .string($0.description) }),
        ])
        continue
      }
      let access = good.map(\.expires).max().map { "until \(dateAndTime($0))" } ?? "no token that counts"
      try console.result("\(printable(rider)): \(access)")
      for device in devices { try console.result("  device \(device)") }
    }
  }
}
