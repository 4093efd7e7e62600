import ArgumentParser
import Encoding
import Foundation
import Operator
import StepProtocol

struct RabbitMQ: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "rabbitmq", abstract: "Makes RabbitMQ the vehicles' broker: writes its configuration.",
    usage: "stepfleet rabbitmq [<options>] <dir>",
    discussion: """
      The configuration is the same for any number of vehicles: RabbitMQ asks the server what a client may do. Type the \
      command again after `stepctl operator move`, or when the folder was moved.
      """)

  @Argument(help: "The server's folder.")
  var dir: String

  @Option(
    help: ArgumentHelp(
      "The TCP port of this computer at which RabbitMQ asks the server (default: as before, or 8884).",
      valueName: "port"))
  var port: Int?

  @Option(
    help: ArgumentHelp(
      "Where the server reaches each node of a cluster, at the broker's host: ports, as 8893,8894; or none.",
      valueName: "ports")
  )
  var nodes: String?

  func run() throws {
    let folder = ServerFolder(dir)
    var settings = try folder.settings()
    let port = port ?? settings.rabbitMQ?.port ?? 8884
    let typed =
      nodes == "none" ? [] : nodes?.split(separator: ",", omittingEmptySubsequences: false).map { Int($0) ?? 0 }
    let ports = typed ?? settings.rabbitMQ?.nodes ?? []
    guard ([port] + ports).allSatisfy(ServerFolder.ports.contains) else {
      throw ServerError.usage("a port is 1 to 65535")
    }
    guard ports.count != 1, Set(ports).count == ports.count else {
      throw ServerError.usage("--nodes names two ports or more, each once")
    }
    let rabbitMQ = ServerFolder.Settings.RabbitMQ(port: port, nodes: ports)
    try rabbitMQ.configure(folder)
    settings.rabbitMQ = rabbitMQ
    try folder.write(settings)
    let path = folder.path(RabbitMQConfiguration.folder)
    print(
      """
      \(path): the configuration of RabbitMQ, 3.10 or later\(ports.isEmpty ? "" : ", with \(ports.count) nodes")
      Next: start the server again, and RabbitMQ in mosquitto's place, with
        RABBITMQ_CONFIG_FILE=\(path)/rabbitmq.conf
        RABBITMQ_ADVANCED_CONFIG_FILE=\(path)/advanced.config
        RABBITMQ_ENABLED_PLUGINS_FILE=\(path)/enabled_plugins
      """)
  }
}

extension ServerFolder.Settings.RabbitMQ {
  /// Writes the configuration into the server's folder, in place of one that is there.
  func configure(_ folder: ServerFolder) throws {
    let path = URL(filePath: folder.path(RabbitMQConfiguration.folder)).resolvingSymlinksInPath().path
    let configuration = RabbitMQConfiguration(folder: path, port: port, owner: try folder.place.brokerFiles())
    try ServerFolder.makeFolder(path, mode: 0o755)
    let own = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
    guard own >= 0 else { throw ServerError.file(path, String(cString: strerror(errno))) }
    defer { close(own) }
    try ServerFolder.giveAway(own, path)
    guard fchmod(own, 0o755) == 0 else { throw ServerError.file(path, String(cString: strerror(errno))) }
    for (name, text) in configuration.files {
      try ServerFolder.replace("\(path)/\(name)", Array(text.utf8), mode: 0o644)
    }
  }
}

/// The files of RabbitMQ 3.10 or later as the vehicles' broker. They name no vehicle and no rider.
private struct RabbitMQConfiguration {
  /// In the server's folder.
  static let folder = "rabbitmq"

  /// Where the files are: absolute.
  let folder: String
  /// Where RabbitMQ asks the server.
  let port: Int
  let owner: FleetOperator.BrokerFiles

  var files: [(name: String, text: String)] {
    [
      ("rabbitmq.conf", text), ("advanced.config", tls), ("definitions.json", definitions),
      ("enabled_plugins", "[rabbitmq_mqtt,rabbitmq_auth_backend_http,rabbitmq_auth_backend_cache].\n"),
    ]
  }

  private var text: String {
    """
    # The vehicles' MQTT broker, for RabbitMQ 3.10 or later. `stepfleet rabbitmq` makes these files.

    # MQTT alone: no AMQP, by which a client could reach another's queue.
    listeners.tcp = none
    mqtt.listeners.tcp = none
    mqtt.listeners.ssl.default = \(owner.address.map { "\($0):" } ?? "")\(owner.port)
    mqtt.tcp_listen_options.nodelay = true

    # The certificate's common name is the client's user name.
    ssl_cert_login_from = common_name
    mqtt.ssl_cert_login = true
    mqtt.allow_anonymous = false

    # stepfleet says what a client may do. What it allows is remembered for ten seconds, and what it refuses is not.
    auth_backends.1 = cache
    auth_cache.cached_backend = http
    auth_cache.cache_ttl = 10000
    auth_cache.cache_refusals = false
    auth_http.http_method = post
    auth_http.user_path = http://127.0.0.1:\(port)/broker/user
    auth_http.vhost_path = http://127.0.0.1:\(port)/broker/vhost
    auth_http.resource_path = http://127.0.0.1:\(port)/broker/resource
    auth_http.topic_path = http://127.0.0.1:\(port)/broker/topic

    # The operator's notices are kept over a restart, for vehicles that come later.
    mqtt.retained_message_store = rabbit_mqtt_retained_msg_store_dets
    # A command has at most \(Command.maximumSize) bytes.
    max_message_size = \(Command.maximumSize + 512)

    load_definitions = \(folder)/definitions.json

    """
  }

  /// Without the mapping, the plugin would take the text before a colon in a user's name as a virtual host. Our clients
  /// leave no sessions behind; without the policy, what others leave behind would be kept for a day, and grow.
  private var definitions: String {
    let definitions: JSON = [
      "vhosts": [["name": "/"]],
      "policies": [
        [
          "vhost": "/", "name": "sessions", "pattern": "^mqtt-subscription-", "apply-to": "queues", "priority": 0,
          "definition": ["expires": 3_600_000, "max-length": 50],
        ]
      ],
      "global_parameters": [
        ["name": "mqtt_port_to_vhost_mapping", "value": .object([.init("\(owner.port)", "/")])]
      ],
    ]
    return definitions.text + "\n"
  }

  /// All TLS options. rabbitmq.conf has no options for revocation lists, and the options here replace those there.
  /// RabbitMQ reads the revocation list for each connection (Erlang, ssl: `crl_cache`).
  private var tls: String {
    func quoted(_ path: String) -> String {
      "\"\(path.replacing("\\", with: "\\\\").replacing("\"", with: "\\\""))\""
    }
    return """
      %% -*- coding: utf-8 -*-
      %% Mutual TLS, and what is revoked: the lists in the folder at the end.
      [{rabbit, [{ssl_options, [
        {cacertfile, \(quoted(owner.authority))},
        {certfile, \(quoted(owner.certificate))},
        {keyfile, \(quoted(owner.key))},
        {verify, verify_peer},
        %% A session that is resumed would not be looked up in the lists.
        {reuse_sessions, false},
        {fail_if_no_peer_cert, true},
        {versions, ['tlsv1.3', 'tlsv1.2']},
        {crl_check, peer},
        {crl_cache, {ssl_crl_hash_dir, {internal, [{dir, \(quoted(owner.revocationFolder))}]}}}
      ]}]}].

      """
  }
}
