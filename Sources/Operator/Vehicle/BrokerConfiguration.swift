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
  /// The user that mosquitto becomes when root starts it; nil where that would be root, or has no name.
  let user: String?
  /// Whether it keeps over a restart what is retained: a fleet's does, because its vehicles are not always there.
  let isPersistent: Bool

  /// Whose a new broker's key is to be: a broker is not to run as root, and Debian's has a user of its own.
  static var owner: uid_t { geteuid() == 0 ? getpwnam("mosquitto")?.pointee.pw_uid ?? 0 : geteuid() }

  /// - Parameters:
  ///   - folder: any path of the vehicle's folder, which exists.
  ///   - owner: the user that owns the broker's private key.
  init(folder: String, host: BrokerHost, port: UInt16, owner: uid_t, isPersistent: Bool = false) throws {
    self.isPersistent = isPersistent
    guard let resolved = realpath(folder, nil) else { throw SystemError("find", folder) }
    defer { free(resolved) }
    // mosquitto refuses malformed UTF-8 (MQTT 3.1.1, 1.5.3), and a control character may end the line.
    guard let absolute = String(validatingCString: resolved),
      absolute.unicodeScalars.allSatisfy({
        $0.properties.generalCategory != .control && !$0.properties.isNoncharacterCodePoint
      })
    else { throw ProvisioningError.unusablePath }
    self.folder = absolute
    self.host = host
    self.port = port
    user = owner == 0 ? nil : getpwuid(owner).map { String(cString: $0.pointee.pw_name) }
  }

  var text: String {
    """
    # The vehicle's MQTT broker, for mosquitto 2.0. Riders and the controller are its clients.
    #
    # Only this file has absolute paths: mosquitto looks for relative ones in its working folder. After this folder was
    # moved, `stepctl provision vehicle DIR --relocate` writes this file again, without your changes to it.

    listener \(port)\(host.isLoopback ? " \(host)" : "")

    # Mutual TLS, 1.2 or later. Without this line mosquitto 2.0.11 allows 1.1 where OpenSSL does.
    tls_version tlsv1.2
    cafile \(folder)/\(VehiclePaths.authorityCertificate)
    certfile \(folder)/\(VehiclePaths.brokerCertificate)
    keyfile \(folder)/\(VehiclePaths.brokerKey)
    require_certificate true

    # The certificate's common name is the client's user name: "controller", "rider", "watcher" or "operator", and the vehicle where
    # there are several.
    use_identity_as_username true
    allow_anonymous false
    acl_file \(folder)/\(VehiclePaths.accessList)

    # A command has at most \(Command.maximumSize) bytes. Its topic and the packet's header need the rest.
    max_packet_size \(Command.maximumSize + 512)
    # Nagle's algorithm would delay each exchange by 44 ms.
    set_tcp_nodelay true
    \(persistenceLines)
    # Our clients leave no sessions behind. Without these lines mosquitto would keep a thousand messages for each session
    # that another client leaves behind, for ever.
    max_queued_messages 50
    persistent_client_expiration 1h
    # No client may read these statistics.
    sys_interval 0
    log_dest stderr
    \(userLines)
    """
  }

  /// systemd.exec(5), a drop-in for the broker's unit. A connection that says nothing holds one of mosquitto's
  /// descriptors for 90 s, and 1,024 is what a service has otherwise.
  static let limits = """
    # For a broker that systemd starts: copy this to /etc/systemd/system/mosquitto.service.d/, `systemctl daemon-reload`,
    # and restart it. Without it, a thousand connections that say nothing lock everybody out.
    [Service]
    LimitNOFILE=16384
    LimitCORE=0
    MemoryMax=1G

    """

  /// nft(8). mosquitto has no limit on connections by address, and none on the time that a TLS handshake takes.
  var firewall: String {
    """
    # For nftables: who may connect to the broker, and how often. `nft -f mosquitto.nft` loads it; a file of this content in
    # /etc/nftables.d, or an `include` in /etc/nftables.conf, does at each start.
    table inet stepctl_\(port) {}
    delete table inet stepctl_\(port)
    table inet stepctl_\(port) {
      # Addresses that connect, and how many connections each has.
      set connected4 { type ipv4_addr; size 65535; flags dynamic; }
      set connected6 { type ipv6_addr; size 65535; flags dynamic; }
      # How fast each may make new ones.
      set hasty4 { type ipv4_addr; size 65535; flags dynamic,timeout; timeout 60s; }
      set hasty6 { type ipv6_addr; size 65535; flags dynamic,timeout; timeout 60s; }

      chain broker {
        add @connected4 { ip saddr ct count over 16 } reject with tcp reset
        add @connected6 { ip6 saddr and ffff:ffff:ffff:ffff:: ct count over 16 } reject with tcp reset
        update @hasty4 { ip saddr limit rate over 5/second burst 20 packets } drop
        update @hasty6 { ip6 saddr and ffff:ffff:ffff:ffff:: limit rate over 5/second burst 20 packets } drop
      }

      chain input {
        type filter hook input priority filter; policy accept;
        iifname != "lo" tcp dport \(port) ct state new jump broker
      }
    }

    """
  }

  /// All files that the broker needs but certificates.
  func files(_ access: AccessList) -> [NewFile] {
    [
      NewFile(VehiclePaths.broker, text), NewFile(VehiclePaths.accessList, access.text),
      NewFile(VehiclePaths.brokerLimits, Self.limits), NewFile(VehiclePaths.firewall, firewall),
    ]
  }

  private var persistenceLines: String {
    guard isPersistent else {
      return """
        # A restart forgets everything: the controller publishes its state again whenever it connects.
        persistence false
        """
    }
    return """
      # The operator's notices are kept over a restart, for vehicles that come later.
      persistence true
      persistence_location \(folder)/\(VehiclePaths.data)/
      autosave_on_changes true
      autosave_interval 1
      """
  }

  private var userLines: String {
    guard let user else {
      return """

        # mosquitto is not to run as root. Give \(VehiclePaths.brokerKey) to the user that it becomes when root starts it
        # (Debian's is "mosquitto"), let them reach this folder, and write this file again with --relocate.

        """
    }
    return """

      # The user that mosquitto becomes when root starts it: the owner of \(VehiclePaths.brokerKey), which it has to read. For
      # another user (Debian's is "mosquitto"), give that file to them, and let them reach this folder.
      user \(user)

      """
  }
}

/// Who may use which topics of the broker: acl_file in mosquitto.conf(5). Everything else is forbidden.
struct AccessList {
  struct Part {
    let topic: TopicPrefix
    let steps: [Step]
    /// The vehicle, where the broker serves several.
    let uuid: UUID?
  }

  private let parts: [Part]

  init(_ parts: [Part]) { self.parts = parts }

  var text: String {
    var text = """
      # Who may use which topics; all other use is forbidden. A user is the common name of a client's certificate. It is a
      # role and not a person, so that the broker learns no names.

      """
    for part in parts {
      let availability = part.topic.availability
      text += "\nuser \(CertificateRole.rider(of: part.uuid).commonName)\ntopic read \(availability)\n"
      text += lines(of: part, setPosition: "write", status: "read")
      text += "\nuser \(CertificateRole.watcher(of: part.uuid).commonName)\ntopic read \(availability)\n"
      text += lines(of: part, setPosition: nil, status: "read")
      // The controller reads it too: a will of a connection that it has long replaced may come late.
      text += "\nuser \(CertificateRole.controller(of: part.uuid).commonName)\ntopic readwrite \(availability)\n"
      text += "topic read \(part.topic.notice)\ntopic write \(part.topic.events)\n"
      text += lines(of: part, setPosition: "read", status: "write")
    }
    text += "\nuser \(CertificateRole.operator.commonName)\n"
    for part in parts {
      text += "topic read \(part.topic.availability)\ntopic readwrite \(part.topic.notice)\n"
      text += "topic read \(part.topic.events)\n"
      text += lines(of: part, setPosition: nil, status: "read")
    }
    return text
  }

  private func lines(of part: Part, setPosition: String?, status: String) -> String {
    part.steps.map { step in
      (setPosition.map { "topic \($0) \(part.topic.setPosition(step.id))\n" } ?? "")
        + "topic \(status) \(part.topic.status(step.id))\n"
    }.joined()
  }
}
