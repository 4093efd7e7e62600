import Domain
import Glibc
import StepProtocol
import SystemIO

/// mosquitto.conf(5), for mosquitto 2.0.
struct BrokerConfiguration {
  /// The vehicle's folder, absolute.
  let folder: String
  let host: BrokerHost
  let port: UInt16
  /// Whom mosquitto is to be when root starts it.
  let user: String?

  /// - Parameters:
  ///   - folder: any path of the vehicle's folder, which exists.
  ///   - owner: the user whom the broker's private key belongs to.
  init(folder: String, host: BrokerHost, port: UInt16, owner: uid_t) throws {
    guard let resolved = realpath(folder, nil) else { throw SystemError("find", folder) }
    defer { free(resolved) }
    // What mosquitto would refuse as malformed UTF-8 (MQTT 3.1.1, 1.5.3), or read as the end of the line.
    guard let absolute = String(validatingCString: resolved),
      absolute.unicodeScalars.allSatisfy({
        $0.properties.generalCategory != .control && !$0.properties.isNoncharacterCodePoint
      })
    else { throw ProvisioningError.unusablePath }
    self.folder = absolute
    self.host = host
    self.port = port
    user = getpwuid(owner).map { String(cString: $0.pointee.pw_name) }
  }

  var text: String {
    """
    # The vehicle's MQTT broker, for mosquitto 2.0. Riders and the controller both come as clients.
    #
    # Paths are absolute here, and only here: mosquitto would look for others in its working folder. When this folder
    # was moved, `stepctl provision vehicle DIR --relocate` writes this file anew, without what was changed in it.

    listener \(port)\(host.isLoopback ? " \(host)" : "")

    # Mutual TLS, 1.2 at the least: by itself mosquitto 2.0.11 leaves 1.1 to the defaults of OpenSSL.
    tls_version tlsv1.2
    cafile \(folder)/\(VehiclePaths.authorityCertificate)
    certfile \(folder)/\(VehiclePaths.brokerCertificate)
    keyfile \(folder)/\(VehiclePaths.brokerKey)
    require_certificate true

    # A client is what its certificate's common name says: "controller" or "rider".
    use_identity_as_username true
    allow_anonymous false
    acl_file \(folder)/\(VehiclePaths.accessList)

    # A command has at most \(Command.maximumSize) bytes; the rest is for its topic and the packet's header.
    max_packet_size \(Command.maximumSize + 512)
    # Nagle's algorithm would hold back each exchange by 44 ms.
    set_tcp_nodelay true
    # A restart forgets all: the controller publishes its state anew whenever it connects.
    persistence false
    # No client of ours leaves a session behind to be kept for it. Whoever leaves many is not to fill the memory: by itself
    # mosquitto keeps a thousand messages for each of them, for ever.
    max_queued_messages 50
    persistent_client_expiration 1h
    # Nobody may read these statistics.
    sys_interval 0
    log_dest stderr
    \(userLines)
    """
  }

  private var userLines: String {
    guard let user else { return "" }
    return """

      # Whom mosquitto becomes when root starts it: the owner of \(VehiclePaths.brokerKey), which it has to read. To have it be
      # another (Debian's is "mosquitto"), give that file to them, and see to it that they can reach this folder.
      user \(user)

      """
  }
}

/// Who may use which topics of the broker: acl_file in mosquitto.conf(5). What is not in it is not allowed.
struct AccessList {
  let topic: TopicPrefix
  let steps: [Step]

  var text: String {
    var text = """
      # Who may use which topics; nobody may use any other. A user is the common name of a client's certificate:
      # a role and not a person, so that the broker learns no names.

      """
    for (user, setPosition, status) in [("rider", "write", "read"), ("controller", "read", "write")] {
      text += "\nuser \(user)\n"
      for step in steps {
        text += "topic \(setPosition) \(topic.setPosition(step.id))\n"
        text += "topic \(status) \(topic.status(step.id))\n"
      }
    }
    return text
  }
}
