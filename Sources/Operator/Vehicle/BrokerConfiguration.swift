import Domain
import Encoding
import Glibc
import StepProtocol
import SystemIO

/// mosquitto.conf(5), for mosquitto 2.0.
struct BrokerConfiguration {
  /// The vehicle's folder, absolute.
  let folder: String
  let host: BrokerHost
  let port: UInt16
  /// The user that mosquitto becomes when root starts it; nil if that is root, or has no name.
  let user: String?
  /// Whether retained messages survive a restart. They do for a fleet, because its vehicles are not always connected.
  let isPersistent: Bool
  /// Whether there is a revocation list. mosquitto does not start if a configured list is missing.
  var hasRevocationList = true

  /// The owner of a new broker's private key. A broker must not run as root; on Debian it runs as "mosquitto".
  static var owner: uid_t { geteuid() == 0 ? getpwnam("mosquitto")?.pointee.pw_uid ?? 0 : geteuid() }

  /// - Parameters:
  ///   - folder: any path of the vehicle's folder, which exists.
  ///   - owner: the owner of the broker's private key.
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
    # moved, `stepctl provision relocate DIR` writes this file again, without your changes to it.

    listener \(port)\(host.isLoopback ? " \(host)" : "")

    # Mutual TLS, 1.2 or later. Without this line mosquitto 2.0.11 allows 1.1 where OpenSSL does.
    tls_version tlsv1.2
    cafile \(folder)/\(VehiclePaths.authorityCertificate)
    certfile \(folder)/\(VehiclePaths.brokerCertificate)
    keyfile \(folder)/\(VehiclePaths.brokerKey)
    require_certificate true
    \(revocationLines)

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

  /// systemd.exec(5), a drop-in for the broker's unit. A silent connection holds one of mosquitto's descriptors for 90
  /// s, and a service has 1,024 by default.
  static let limits = """
    # For a broker that systemd starts: copy this to /etc/systemd/system/mosquitto.service.d/, `systemctl daemon-reload`,
    # and restart it. Without it, a thousand connections that say nothing lock everybody out.
    [Service]
    LimitNOFILE=16384
    LimitCORE=0
    MemoryMax=1G

    """

  /// nft(8). mosquitto limits neither the connections per address nor the time for a TLS handshake.
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

  /// All files that the broker needs except certificates. A fleet can have RabbitMQ in place of mosquitto.
  func files(_ access: AccessList) -> [NewFile] {
    [
      NewFile(VehiclePaths.broker, text), NewFile(VehiclePaths.accessList, access.text),
      NewFile(VehiclePaths.brokerLimits, Self.limits), NewFile(VehiclePaths.firewall, firewall),
    ]
      + (isPersistent
        ? [
          NewFile(VehiclePaths.rabbit, rabbitText), NewFile(VehiclePaths.rabbitTLS, rabbitTLS),
          NewFile(VehiclePaths.rabbitDefinitions, access.definitions(port: port)),
        ] : [])
  }

  /// rabbitmq.conf, for RabbitMQ 3.10 with its plugin rabbitmq_mqtt: a broker that can run on several machines.
  private var rabbitText: String {
    """
    # The vehicles' MQTT broker, for RabbitMQ 3.10 or later with the plugin rabbitmq_mqtt, in place of mosquitto.
    # RABBITMQ_CONFIG_FILE names this file, RABBITMQ_ADVANCED_CONFIG_FILE the one for TLS: \(VehiclePaths.rabbitTLS).
    # Only these have absolute paths.

    # MQTT alone: no AMQP, by which a client could reach another's queue.
    listeners.tcp = none
    mqtt.listeners.tcp = none
    mqtt.listeners.ssl.default = \(host.isLoopback ? "127.0.0.1:" : "")\(port)
    mqtt.tcp_listen_options.nodelay = true

    # The certificate's common name is the client's user name.
    ssl_cert_login_from = common_name
    mqtt.ssl_cert_login = true
    mqtt.allow_anonymous = false

    # The operator's notices are kept over a restart, for vehicles that come later.
    mqtt.retained_message_store = rabbit_mqtt_retained_msg_store_dets
    # A command has at most \(Command.maximumSize) bytes.
    max_message_size = \(Command.maximumSize + 512)

    # Who may use which topics. After a vehicle has joined: rabbitmqctl import_definitions \(VehiclePaths.rabbitDefinitions)
    load_definitions = \(folder)/\(VehiclePaths.rabbitDefinitions)

    """
  }

  /// advanced.config, with all TLS options. rabbitmq.conf has no options for revocation lists, and the options here
  /// replace those there. RabbitMQ reads the revocation list for each connection (Erlang, ssl: `crl_cache`).
  private var rabbitTLS: String {
    // An Erlang string.
    let folder = folder.substituting("\\", by: "\\\\").substituting("\"", by: "\\\"")
    return """
      %% -*- coding: utf-8 -*-
      %% Mutual TLS for \(VehiclePaths.rabbit), and what `stepctl operator revoke` has revoked: tls/*.r0.
      [{rabbit, [{ssl_options, [
        {cacertfile, "\(folder)/\(VehiclePaths.authorityCertificate)"},
        {certfile, "\(folder)/\(VehiclePaths.brokerCertificate)"},
        {keyfile, "\(folder)/\(VehiclePaths.brokerKey)"},
        {verify, verify_peer},
        {fail_if_no_peer_cert, true},
        {versions, ['tlsv1.3', 'tlsv1.2']},
        {crl_check, peer},
        {crl_cache, {ssl_crl_hash_dir, {internal, [{dir, "\(folder)/\(VehiclePaths.tls)"}]}}}
      ]}]}].

      """
  }

  private var revocationLines: String {
    guard hasRevocationList else {
      return "# `stepctl provision update DIR` makes a list of what is revoked."
    }
    return """
      # What `stepctl operator revoke` has revoked. mosquitto reads it again on SIGHUP.
      crlfile \(folder)/\(VehiclePaths.revocationList)
      """
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
        # (Debian's is "mosquitto"), let them reach this folder, and write this file again with `stepctl provision relocate`.

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
    /// The vehicle, if the broker serves several.
    let uuid: UUID?
  }

  private enum Access: String {
    case read, write, readwrite

    var reads: Bool { self != .write }
    var writes: Bool { self != .read }
  }

  /// What the clients with this common name in their certificates may do.
  private struct Grant {
    let user: String
    var topics: [(access: Access, name: String)]
  }

  private let parts: [Part]

  init(_ parts: [Part]) { self.parts = parts }

  private var grants: [Grant] {
    var grants: [Grant] = []
    var own = Grant(user: CertificateRole.operator.commonName, topics: [])
    for part in parts {
      let topic = part.topic
      func topics(setPosition: Access?, status: Access) -> [(access: Access, name: String)] {
        part.steps.flatMap { step in
          (setPosition.map { [($0, topic.setPosition(step.id))] } ?? []) + [(status, topic.status(step.id))]
        }
      }
      grants.append(
        Grant(
          user: CertificateRole.rider(of: part.uuid).commonName,
          topics: [(.read, topic.availability)] + topics(setPosition: .write, status: .read)))
      grants.append(
        Grant(
          user: CertificateRole.watcher(of: part.uuid).commonName,
          topics: [(.read, topic.availability)] + topics(setPosition: nil, status: .read)))
      // The controller reads its own availability: the will of an old, replaced connection may come late.
      grants.append(
        Grant(
          user: CertificateRole.controller(of: part.uuid).commonName,
          topics: [(.readwrite, topic.availability), (.read, topic.notice), (.write, topic.events)]
            + topics(setPosition: .read, status: .write)))
      own.topics +=
        [(.read, topic.availability), (.readwrite, topic.notice), (.read, topic.events)]
        + topics(setPosition: nil, status: .read)
    }
    return grants + [own]
  }

  /// For mosquitto.
  var text: String {
    """
    # Who may use which topics; all other use is forbidden. A user is the common name of a client's certificate. It is a
    # role and not a person, so that the broker learns no names.

    """
      + grants.map { grant in
        "\nuser \(grant.user)\n" + grant.topics.map { "topic \($0.access.rawValue) \($0.name)\n" }.joined()
      }.joined()
  }

  /// The same for RabbitMQ (its "definitions"): users without a password, who are identified by their certificates.
  ///
  /// - Parameter port: the port of the MQTT listener. Without the mapping, the plugin would take the text before a
  ///   colon in a user's name as a virtual host.
  func definitions(port: UInt16) -> String {
    func pattern(_ topics: [String]) -> JSON {
      .string(topics.isEmpty ? "^$" : "^(\(topics.map(Self.routingPattern).joined(separator: "|")))$")
    }
    let grants = grants
    let resources: JSON = "^(mqtt-subscription-.*|amq\\.topic)$"
    let definitions: JSON = [
      "vhosts": [["name": "/"]],
      "users": .array(
        grants.map {
          [
            "name": .string($0.user), "password_hash": "", "hashing_algorithm": "rabbit_password_hashing_sha256",
            "tags": "",
          ]
        }),
      "permissions": .array(
        grants.map {
          [
            "user": .string($0.user), "vhost": "/", "configure": "^mqtt-subscription-.*$", "write": resources,
            "read": resources,
          ]
        }),
      "topic_permissions": .array(
        grants.map { grant in
          [
            "user": .string(grant.user), "vhost": "/", "exchange": "amq.topic",
            "write": pattern(grant.topics.filter(\.access.writes).map(\.name)),
            "read": pattern(grant.topics.filter(\.access.reads).map(\.name)),
          ]
        }),
      "global_parameters": [
        ["name": "mqtt_port_to_vhost_mapping", "value": .object([.init("\(port)", "/")])]
      ],
    ]
    return definitions.text + "\n"
  }

  /// A topic in RabbitMQ's routing form: with `.` and `/` exchanged. Of the characters in a topic, only `.` has a
  /// meaning in a pattern.
  private static func routingPattern(_ topic: String) -> String {
    topic.map { $0 == "/" ? "\\." : $0 == "." ? "/" : String($0) }.joined()
  }
}
