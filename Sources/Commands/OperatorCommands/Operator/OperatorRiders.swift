import Access
import ArgumentParser
import CommandParts
import Domain
import Encoding
import Operator
import StepProtocol
import Terminal

struct OperatorRiders: ContextCommand {
  static let configuration = CommandConfiguration(
    commandName: "riders", abstract: "List the riders and their devices.",
    usage: "stepctl operator riders [<options>] <dir> [<entry>]")

  @OptionGroup var place: PlaceOptions
  @OptionGroup var entry: EntryOptions
  @OptionGroup var output: OutputOptions

  func run(in context: Context) throws {
    let console = output.console(context)
    let book = try TokenBook(place.place, at: context.seconds)
    let riders = Dictionary(grouping: book.tokens, by: \.rider).sorted { $0.key < $1.key }
    if riders.isEmpty { console.note("no riders") }
    for (rider, entries) in try entry.chosen(of: riders, "rider", in: place, { $0.key == $1 }) {
      let good = entries.filter { [.valid, .notYetValid].contains(book.state(of: $0)) }
      var devices: [Thumbprint] = []
      for entry in entries where !devices.contains(entry.device) { devices.append(entry.device) }
      if console.isJSON {
        var members: [JSON.Member] = [
          .init("rider", .string(rider)), .init("tokens", .integer(Int64(good.count))),
          .init("expires", good.map(\.expires).max().map { .integer($0) } ?? .null),
          .init("device_keys", .array(devices.map { .string($0.description) })),
        ]
        if entry.entry != nil {
          members.append(.init("entries", .array(entries.map { book.json($0) })))
        }
        try console.result(.object(members))
        continue
      }
      let access = good.map(\.expires).max().map { "until \(dateAndTime($0))" } ?? "no token that counts"
      try console.result("\(printable(rider)): \(access)")
      for device in devices { try console.result("  device \(device.grouped)") }
      guard entry.entry != nil else { continue }
      for token in entries {
        try console.result("  token  \(token.id)  \(book.line(token))")
      }
    }
  }
}
