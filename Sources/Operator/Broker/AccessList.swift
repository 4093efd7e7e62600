import SystemIO

/// Who may use which topics of the broker: acl_file in mosquitto.conf(5). Everything else is forbidden.
struct AccessList {
  private let vehicles: [VehicleTopics]

  init(_ vehicles: [VehicleTopics]) { self.vehicles = vehicles }

  var file: NewFile { NewFile(VehiclePaths.accessList, text) }

  private var text: String {
    var text = """
      # Who may use which topics; all other use is forbidden. A user is the common name of a client's certificate. It is a
      # role and not a person, so that the broker learns no names.

      """
    func add(_ client: BrokerClient, _ vehicles: [VehicleTopics]) {
      text += "\nuser \(client.name)\n"
      for (access, topic) in vehicles.flatMap({ $0.allowed(to: client) }) {
        text += "topic \(access.rawValue) \(topic)\n"
      }
    }
    for vehicle in vehicles { for client in vehicle.clients { add(client, [vehicle]) } }
    add(.operator, vehicles)
    return text
  }
}
