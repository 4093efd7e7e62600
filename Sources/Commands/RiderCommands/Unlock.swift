import ArgumentParser
import CommandParts
import Domain
import Encoding
import Rider
import Terminal

struct Unlock: ContextCommand {
  static let configuration = CommandConfiguration(
    commandName: "unlock", abstract: "Use this device's key for a while without its passphrase.",
    usage: "stepctl unlock <options>")

  @Option(
    name: .customLong("for"), parsing: .unconditional,
    help: ArgumentHelp("For how long, as 90s, 15m or 1h; at most 12h.", valueName: "time"))
  var time = Lifetime(seconds: 900)

  @OptionGroup var input: InputOptions
  @OptionGroup var output: OutputOptions

  func validate() throws {
    guard time.seconds <= EnrolledDevice.longestUnlocking else { throw ValidationError("--for takes at most 12h.") }
  }

  func run(in context: Context) throws {
    let console = output.console(context)
    let device = try EnrolledDevice(context.folders)
    try device.requireKey()
    _ = try device.signingKey(
      unlock: context.unlock(context.interruption(), noInput: input.noInput, byPassphrase: true))
    // It was asked for if one protects the key.
    guard let passphrase = context.passphrase.bytes else {
      return try console.isJSON
        ? console.result(["unlocked_s": .null, "expires": .null])
        : console.result("no passphrase protects this device's key: it is never locked")
    }
    let end = try device.unlock(by: passphrase, for: time.seconds, now: context.seconds)
    if console.isJSON {
      return try console.result(["unlocked_s": .integer(time.seconds), "expires": .integer(end)])
    }
    try console.result("this device's key is unlocked until \(dateAndTime(end)) (\(span(time.seconds)))")
    console.note("this holds for this login session; `stepctl lock` locks the key earlier")
  }
}
