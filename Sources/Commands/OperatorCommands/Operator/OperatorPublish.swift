import ArgumentParser
import CommandParts
import Domain
import Encoding
import Operator
import Terminal

struct OperatorPublish: ContextCommand {
  static let configuration = CommandConfiguration(
    commandName: "publish", abstract: "Tell the vehicles again what counts and what is revoked.",
    usage: "stepctl operator publish [<options>] <dir>")

  @OptionGroup var place: PlaceOptions
  @OptionGroup var publish: PublishOptions
  @OptionGroup var output: OutputOptions

  func run(in context: Context) throws {
    let console = output.console(context)
    let operatorPlace = try place.place
    let notices = try operatorPlace.notices(now: context.seconds)
    let told = try publish.publish(notices, context, console)
    if console.isJSON { return try console.result(["vehicles": .array(told.map { .string($0) })]) }
    try console.result("the broker has the notice for: \(told.map(printable).joined(separator: ", "))")
    console.note("`\(shellCommand("stepctl", "operator", "log", operatorPlace.path))` says which vehicles have it")
  }
}
