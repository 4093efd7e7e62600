import Access
import ArgumentParser
import CommandParts
import Domain
import Encoding
import FileFormats
import Operator
import StepProtocol
import Terminal

struct OperatorKeys: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "keys", abstract: "Change the key that signs tokens; nobody is locked out.",
    subcommands: [OperatorKeysShow.self, OperatorKeysRotate.self, OperatorKeysRetire.self])
}

struct OperatorKeysShow: ContextCommand {
  static let configuration = CommandConfiguration(
    commandName: "show", abstract: "Show the keys that count.",
    usage: "stepctl operator keys show [<options>] <dir>")

  @OptionGroup var place: PlaceOptions
  @OptionGroup var output: OutputOptions

  func run(in context: Context) throws {
    let console = output.console(context)
    let keys = try place.place.keys()
    for (role, key) in [("present", keys.present), ("next", keys.next), ("previous", keys.previous)] {
      guard let thumbprint = key?.verificationKey.thumbprint else { continue }
      try console.isJSON
        ? console.result(["role": .string(role), "key": .string(thumbprint.description)])
        : console.result("\(role.aligned(to: 8)) \(thumbprint.grouped)")
    }
  }
}

struct OperatorKeysRotate: ContextCommand {
  static let configuration = CommandConfiguration(
    commandName: "rotate", abstract: "Announce the next key; typed again, sign with it.",
    usage: "stepctl operator keys rotate [<options>] <dir>")

  @OptionGroup var place: PlaceOptions

  @Flag(help: "Sign with the next key even if a vehicle may not know it.")
  var force = false

  @Option(
    help: ArgumentHelp("The next key: a file with a JWK, or PEM that OpenSSL reads.", valueName: "file"),
    completion: .file())
  var key: String?

  @OptionGroup var publish: PublishOptions
  @OptionGroup var output: OutputOptions

  func run(in context: Context) throws {
    let console = output.console(context)
    let given = try key.map { try KeyFile.privateContent($0) }
    let (operatorPlace, now) = (try place.place, context.seconds)
    func command(_ words: String...) -> String {
      (["stepctl", "operator"] + words + [shellWord(operatorPlace.path)]).joined(separator: " ")
    }
    let (state, meaning, key, next) =
      switch try operatorPlace.rotateKeys(now: now, force: force, next: given) {
      case .announced(let key):
        (
          "announced", "the next key", key,
          "when every vehicle has the notice (`\(command("log"))` tells), go on: \(command("keys", "rotate"));"
            + " until then the present key signs"
        )
      case .switched(let key):
        (
          "present", "from now on this key signs", key,
          "when the old key's tokens have ended and every vehicle has the notice (`\(command("log"))` tells),"
            + " end the change: \(command("keys", "retire"))"
        )
      }
    try console.isJSON
      ? console.result(["state": .string(state), "key": .string(key.description)])
      : console.result("\(meaning): \(key.grouped)")
    try publish.publish(operatorPlace.notices(now: now), context, console)
    console.note(next)
  }
}

struct OperatorKeysRetire: ContextCommand {
  static let configuration = CommandConfiguration(
    commandName: "retire", abstract: "End a change of keys: the old key counts no more.",
    usage: "stepctl operator keys retire [<options>] <dir>")

  @OptionGroup var place: PlaceOptions

  @Flag(help: "Retire the old key even if that locks riders or vehicles out.")
  var force = false

  @OptionGroup var publish: PublishOptions
  @OptionGroup var output: OutputOptions

  func run(in context: Context) throws {
    let console = output.console(context)
    let operatorPlace = try place.place
    let retired = try operatorPlace.retireKey(now: context.seconds, force: force)
    let key = try operatorPlace.keys().present.verificationKey.thumbprint
    try console.isJSON
      ? console.result([
        "state": "alone", "key": .string(key.description), "unheard": .array(retired.unheard.map { .string($0) }),
        "unconfirmed": .array(retired.unconfirmed.map { .string($0) }),
        "locked_out": .array(retired.lockedOut.map { .string($0) }),
      ])
      : console.result("only this key counts: \(key.grouped)")
    for name in retired.unheard {
      console.note("\(printable(name)) has never sent an event: it may not know this key")
    }
    for name in retired.unconfirmed {
      console.note("\(printable(name)) has not said that it knows this key: if it does not, it obeys nobody")
    }
    for rider in retired.lockedOut { console.note("\(printable(rider)) is locked out until they have a new token") }
    try publish.publish(retired.notices, context, console)
  }
}
