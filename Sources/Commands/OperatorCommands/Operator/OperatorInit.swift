import Access
import ArgumentParser
import CommandParts
import Domain
import Encoding
import FileFormats
import Operator
import StepProtocol
import Terminal

struct OperatorInit: ContextCommand {
  static let configuration = CommandConfiguration(
    commandName: "init", abstract: "Make an operator of several vehicles: one key and one broker.",
    usage: "stepctl operator init [<options>] <dir>")

  @Argument(
    help: ArgumentHelp("The folder that gets operator/; it is made if it is missing.", valueName: "dir"),
    completion: .directory)
  var folder: String

  @OptionGroup var broker: BrokerOptions
  @OptionGroup var output: OutputOptions

  func validate() throws {
    try check(folder: folder, of: "operator")
  }

  func run(in context: Context) throws {
    let console = output.console(context)
    let place = OperatorPlace(folder)
    let (key, end) = try place.initialize(at: broker.address, now: context.seconds)
    if console.isJSON {
      try console.result([
        "folder": .string(folder), "operator_key": .string(key.description), "certificates_end": .integer(end),
      ])
      return
    }
    try console.result(
      """
      the operator is in \(folder)
        broker      \(broker.address), certificate until \(dateAndTime(end))
        operator    \(key.grouped)
      """)
    let obstacle = place.brokerObstacle
    if let obstacle { console.note(obstacle.description) }
    console.note(
      """

      Next:
        \(shellCommand("stepctl", "provision", "vehicle", "NAME", "--operator", folder))
        \(obstacle.map { "\($0.remedy)\n  " } ?? "")\(shellCommand(ProvisionVehicle.broker, "-c", "\(folder)/mosquitto.conf")) &
      The keys in \(folder)/operator sign for all vehicles: keep them safe.
      """)
  }
}
