import ArgumentParser
import CommandParts
import Encoding
import Rider
import Terminal

struct Lock: ContextCommand {
  static let configuration = CommandConfiguration(
    commandName: "lock", abstract: "Ask for the passphrase of this device's key again from now on.",
    usage: "stepctl lock <options>")

  @OptionGroup var output: OutputOptions

  func run(in context: Context) throws {
    let console = output.console(context)
    let wasUnlocked = try EnrolledDevice(context.folders).lock()
    try console.isJSON
      ? console.result(["was_unlocked": .bool(wasUnlocked)])
      : console.result(
        wasUnlocked ? "this device's key is locked" : "this device's key was not unlocked in this login session")
  }
}
