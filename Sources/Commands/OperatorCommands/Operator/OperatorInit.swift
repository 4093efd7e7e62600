import Access
import ArgumentParser
import CommandParts
import Domain
import Encoding
import Operator
import StepProtocol
import Terminal

struct OperatorInit: ContextCommand {
  static let configuration = CommandConfiguration(
    commandName: "init", abstract: "Make an operator of several vehicles: one key and one broker.",
    usage: "stepctl operator init [<options>] <dir>")

  @OptionGroup var place: PlaceOptions
  @OptionGroup var broker: BrokerOptions
  @OptionGroup var output: OutputOptions

  func run(in context: Context) throws {
    let console = output.console(context)
    let folder = place.place.path
    let (key, end) = try place.place.initialize(host: broker.host, port: broker.port, now: context.seconds)
    if console.isJSON {
      try console.result([
        "folder": .string(folder), "operator_key": .string(key.description), "certificates_end": .integer(end),
      ])
      return
    }
    try console.result(
      """
      the operator is in \(folder)
        broker      \(broker.host):\(broker.port), certificate until \(dateAndTime(end))
        operator    \(key.grouped)
      """)
    console.note(
      """

      Next:
        \(shellCommand("stepctl", "provision", "vehicle", "NAME", "--operator", folder))
        \(shellCommand(ProvisionVehicle.broker, "-c", "\(folder)/mosquitto.conf")) &
      The keys in \(folder)/operator sign for all vehicles: keep them safe.
      """)
  }
}
