import ArgumentParser
import CommandParts
import Domain
import Encoding
import Operator
import Terminal

struct OperatorTags: ContextCommand {
  static let configuration = CommandConfiguration(
    commandName: "tags", abstract: "List the vehicles' tags.",
    usage: "stepctl operator tags [<options>] <dir> [<entry>]")

  @OptionGroup var place: PlaceOptions
  @OptionGroup var entry: EntryOptions
  @OptionGroup var output: OutputOptions

  func run(in context: Context) throws {
    let console = output.console(context)
    let tags = try place.place.tags()
    if tags.isEmpty { console.note("no tags") }
    for tag in try entry.chosen(of: tags, "tag", in: place, { $0.uid.description == $1.uppercased() }) {
      let kind = tag.isDynamic ? "dynamic" : "plain"
      try console.isJSON
        ? console.result([
          "uid": .string(tag.uid.description), "vehicle": .string(tag.vehicle.uuid.description),
          "step": .string(tag.step.description), "kind": .string(kind),
        ]) : console.result("\(tag.uid): \(printable(tag.vehicle.name)), \(tag.step), \(kind)")
    }
  }
}
