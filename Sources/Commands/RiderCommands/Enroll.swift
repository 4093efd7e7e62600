import Access
import ArgumentParser
import CommandParts
import Domain
import Encoding
import Glibc
import Rider
import StepProtocol
import SystemIO
import Terminal
import UserSettings

struct Enroll: ContextCommand {
  static let configuration = CommandConfiguration(
    commandName: "enroll", abstract: "Make this device's key, and a request for your operator.",
    usage: "stepctl enroll <options>")

  @Option(help: "What to call you: letters, digits, dots, hyphens and underscores (default: your user name).")
  var name: RiderName?

  @Flag(
    inversion: .prefixedNo, exclusivity: .exclusive,
    help: "Set or change the passphrase of the device's key, or remove it.")
  var passphrase: Bool?

  @Option(
    help: ArgumentHelp("Take the new passphrase from the first line of this file.", valueName: "file"),
    completion: .file())
  var passphraseFile: String?

  @OptionGroup var handover: HandoverOptions
  @OptionGroup var input: InputOptions
  @OptionGroup var output: OutputOptions

  func validate() throws {
    guard passphraseFile == nil || passphrase != false else {
      throw ValidationError("--no-passphrase and --passphrase-file exclude each other.")
    }
  }

  func run(in context: Context) throws {
    let console = output.console(context)
    let device = try EnrolledDevice(context.folders)
    let name = try name ?? userName(context)
    let interruption = try context.interruption()
    let unlock = context.unlock(interruption, noInput: input.noInput)
    // Asks only when the passphrase is known to be needed.
    var asked: [UInt8]??
    let isNew = try device.prepare {
      let new = try newPassphrase(context, interruption)
      asked = .some(new)
      context.passphrase.keep(new)
      return new
    }
    if !isNew, passphrase != nil || passphraseFile != nil {
      let unlock = context.unlock(interruption, noInput: input.noInput, byPassphrase: true)
      _ = try device.signingKey(unlock: unlock)
      // Another program may have made the key while the user was asked.
      let new = try asked ?? newPassphrase(context, interruption)
      try device.protect(by: new, unlock: unlock)
      // What is kept opens the old file, which may be in a backup.
      _ = try? device.lock()
      context.passphrase.keep(new)
      console.note(new == nil ? "the mode of its file alone protects the key" : "the new passphrase protects the key")
    }
    let (request, key) = try device.request(name: name, now: context.seconds, unlock: unlock)
    if console.isJSON {
      try handover.write(request)
      try console.result([
        "name": .string(name.description), "device_key": .string(key.description), "folder": .string(device.path),
        "is_new": .bool(isNew), "request": .string(request), "file": handover.file.map { .string($0) } ?? .null,
      ])
      return
    }
    let place = context.folders.displayed(device.path)
    console.note("\(isNew ? "made this device's key" : "this device's key"), in \(place); it stays there:")
    console.note(key.grouped)
    try handover.put(request, console)
    console.note("give it to your operator; with the answer: stepctl open --import FILE")
  }

  /// - Returns: nil if no passphrase is wanted.
  private func newPassphrase(_ context: Context, _ interruption: Interruption) throws -> [UInt8]? {
    guard passphrase == true || passphraseFile != nil else { return nil }
    let new =
      try passphraseFile.map(Context.passphrase(in:))
      ?? Array(input.secret("passphrase", "new passphrase", isNew: true, context, interruption).utf8)
    if let fault = InputOptions.fault("passphrase", of: new.count) { throw CommandFailure(.usage, fault) }
    return new
  }

  private func userName(_ context: Context) throws -> RiderName {
    let user = getpwuid(geteuid()).map { String(cString: $0.pointee.pw_name) } ?? ""
    guard let name = RiderName(user) else { throw ValidationError("Give --name: what you want to be called.") }
    return name
  }
}
