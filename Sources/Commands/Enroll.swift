import ArgumentParser
import Configuration
import Domain
import Encoding
import Glibc
import Provisioning
import StepProtocol
import Terminal

struct Enroll: ContextCommand {
  static let configuration = CommandConfiguration(
    commandName: "enroll", abstract: "Make this device's key, and a request for your operator.")

  @Option(help: "What you want to be called (default: your user name).")
  var name: RiderName?

  @OptionGroup var handover: HandoverOptions
  @OptionGroup var output: OutputOptions

  func run(in context: Context) throws {
    let console = output.console(context)
    let device = try EnrolledDevice(context.folders)
    let name = try name ?? userName(context)
    let isNew = try device.prepare()
    let (request, key) = try device.request(name: name, now: context.seconds)
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
    console.note("give it to your operator; then import the answer: stepctl config import FILE")
  }

  private func userName(_ context: Context) throws -> RiderName {
    let user = getpwuid(geteuid()).map { String(cString: $0.pointee.pw_name) } ?? ""
    guard let name = RiderName(user) else { throw ValidationError("Give --name: what you want to be called.") }
    return name
  }
}
