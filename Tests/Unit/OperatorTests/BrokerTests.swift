import Certificates
import Domain
import Glibc
import Operator
import SystemIO
import TestSupport
import Testing

/// What a real mosquitto makes of the files.
@Suite("Broker", .enabled(if: Mosquitto.isInstalled, "mosquitto or its clients are not installed"))
struct BrokerTests {
  let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  static let prefix = "arena2036/rolling_chassis"
  static let topics = [
    "\(prefix)/left/set_position", "\(prefix)/left/status", "\(prefix)/right/set_position", "\(prefix)/right/status",
    "\(prefix)/middle/set_position", "\(prefix)/middle/status", "\(prefix)/left/status/more", "\(prefix)/left",
    "\(prefix)/availability", "\(prefix)/operator", "arena2036/other/left/status", "other", "$SYS/broker/uptime",
  ]

  @Test("lets riders command and the controller answer, each at its steps, and nobody anything else")
  func access() throws {
    let broker = try VehicleBroker(in: folder)
    let riderHears = try broker.subscribe(as: broker.rider)
    let controllerHears = try broker.subscribe(as: broker.controller)
    for topic in Self.topics {
      try broker.publish("by-rider", to: topic, as: broker.rider)
      try broker.publish("by-controller", to: topic, as: broker.controller)
    }
    // Each subscriber's messages come in the order in which the broker took them.
    try broker.publish("last", to: "\(Self.prefix)/left/set_position", as: broker.rider)
    try broker.publish("last", to: "\(Self.prefix)/left/status", as: broker.controller)
    #expect(riderHears.waits(for: "last") && controllerHears.waits(for: "last"))

    #expect(
      controllerHears.messages == [
        "\(Self.prefix)/left/set_position by-rider", "\(Self.prefix)/right/set_position by-rider",
        "\(Self.prefix)/availability by-controller",
        "\(Self.prefix)/left/set_position last",
      ])
    #expect(
      riderHears.messages == [
        "\(Self.prefix)/left/status by-controller", "\(Self.prefix)/right/status by-controller",
        "\(Self.prefix)/availability by-controller",
        "\(Self.prefix)/left/status last",
      ])
  }

  @Test("lets the operator alone give notices, which only the controller hears, and does not let it command")
  func notices() throws {
    let broker = try VehicleBroker(in: folder)
    let riderHears = try broker.subscribe(as: broker.rider)
    let controllerHears = try broker.subscribe(as: broker.controller)
    for topic in Self.topics { try broker.publish("by-operator", to: topic, as: broker.operator) }
    try broker.publish("last", to: "\(Self.prefix)/left/set_position", as: broker.rider)
    try broker.publish("last", to: "\(Self.prefix)/left/status", as: broker.controller)
    #expect(riderHears.waits(for: "last") && controllerHears.waits(for: "last"))
    #expect(
      controllerHears.messages == ["\(Self.prefix)/operator by-operator", "\(Self.prefix)/left/set_position last"])
    #expect(riderHears.messages == ["\(Self.prefix)/left/status last"])
  }

  @Test("gives a retained status to a rider who comes later, and no retained command to another rider")
  func retained() throws {
    let broker = try VehicleBroker(in: folder)
    try broker.publish("secret", to: "\(Self.prefix)/left/set_position", as: broker.rider, "-r")
    try broker.publish("open", to: "\(Self.prefix)/left/status", as: broker.controller, "-r")
    let rider = try broker.subscribe(as: broker.rider)
    #expect(rider.waits(for: "status open"))
    #expect(rider.messages == ["\(Self.prefix)/left/status open"])
  }

  @Test("takes the largest command, and ends the connection of a client that sends much more")
  func sizes() throws {
    let broker = try VehicleBroker(in: folder)
    let controller = try broker.subscribe(as: broker.controller)
    let topic = "\(Self.prefix)/left/set_position"
    let largest = String(repeating: "a", count: 8192)
    #expect(try broker.publish(largest, to: topic, as: broker.rider).status == 0)
    #expect(controller.waits(for: largest))
    try broker.publish(largest + String(repeating: "b", count: 600), to: topic, as: broker.rider)
    try broker.publish("after", to: topic, as: broker.rider)
    #expect(controller.waits(for: "after"))
    #expect(controller.messages == ["\(topic) \(largest)", "\(topic) after"])
    #expect(broker.mosquitto.log.contains("disconnected due to oversize packet"), "\(broker.mosquitto.log)")
  }

  /// Whether somebody comes as far as to be a client.
  func connects(_ broker: VehicleBroker, as identity: VehicleBroker.Identity, host: String = "localhost") throws -> Bool
  {
    try broker.publish("x", to: "\(Self.prefix)/left/set_position", as: identity, host: host).status == 0
  }

  @Test("lets in who has a certificate of this vehicle for clients, under its role, and nobody else")
  func certificates() throws {
    let broker = try VehicleBroker(in: folder)
    let uuid = try Vehicle.sample().uuid
    #expect(try connects(broker, as: broker.rider))
    #expect(broker.mosquitto.log.contains("u'rider:\(uuid)'"))
    #expect(try connects(broker, as: broker.controller))
    #expect(broker.mosquitto.log.contains("u'controller:\(uuid)'"))

    let clients = broker.mosquitto.clients
    var anonymous = broker.rider
    anonymous.certificate = nil
    #expect(try !connects(broker, as: anonymous))
    #expect(try !connects(broker, as: .broker(broker.vehicle)))

    // An authority of the same name, which has another key.
    let other = VehicleFolder("\(folder.path)/other")
    _ = try other.provisionVehicle(.sample(), now: now, force: false)
    _ = try other.provisionToken(.sample(), now: now, force: false)
    var foreign = VehicleBroker.Identity.rider(other)
    foreign.authority = broker.rider.authority
    #expect(try !connects(broker, as: foreign))

    _ = try broker.vehicle.provisionToken(.sample(RiderName("former")!), now: now, force: false)
    try broker.vehicle.endCertificate("riders/former/rider.pem", "rider:\(uuid)", for: .client)
    #expect(try !connects(broker, as: .rider(broker.vehicle, "former")))
    #expect(broker.mosquitto.clients == clients)
  }

  @Test("shows riders a certificate that they believe for the names it was made for, and for no others")
  func hostNames() throws {
    let broker = try VehicleBroker(in: folder)
    #expect(try connects(broker, as: broker.rider, host: "127.0.0.1"))
    // The same computer, by an address that is not in the certificate; the broker is not asked to listen there.
    let elsewhere = VehicleFolder("\(folder.path)/elsewhere")
    let port = try Port.unused()
    let address = BrokerAddress(host: BrokerHost("vehicle.example")!, port: port)
    try elsewhere.provisionVehicle(.sample(), at: address, force: false)
    _ = try elsewhere.provisionToken(.sample(), now: now, force: false)
    let everywhere = try VehicleBroker(elsewhere, port: port)
    #expect(try connects(everywhere, as: everywhere.rider))
    #expect(try !connects(everywhere, as: everywhere.rider, host: "127.0.0.2"))
    var believer = everywhere.rider
    believer.authority = broker.rider.authority
    #expect(try !connects(everywhere, as: believer))
  }

  @Test("listens on the computer itself alone when it is only for that")
  func loopback() throws {
    let broker = try VehicleBroker(in: folder)
    #expect(!broker.mosquitto.log.contains("Error"), "\(broker.mosquitto.log)")
    // All of 127.0.0.0/8 is the computer itself, but only one address of it was asked for.
    let result = try broker.publish(
      "x", to: "\(Self.prefix)/left/set_position", as: broker.rider, host: "127.0.0.2")
    #expect(result.printed.contains("Connection refused"), "\(result.printed)")
  }

  @Test(
    "speaks TLS 1.2 and 1.3, and 1.1 not even where OpenSSL would",
    .enabled(if: Subprocess.isInstalled("openssl"), "openssl is not installed"))
  func versions() throws {
    let configuration = "\(folder.path)/openssl.cnf"
    let text = """
      openssl_conf = default
      [default]
      ssl_conf = ssl
      [ssl]
      system_default = system
      [system]
      MinProtocol = TLSv1
      CipherString = DEFAULT@SECLEVEL=0

      """
    try Files.create(configuration, with: text.utf8, mode: 0o600)
    let environment = ["OPENSSL_CONF": configuration]
    let broker = try VehicleBroker(in: folder, environment: environment)
    for (version, isSpoken) in [("-tls1_1", false), ("-tls1_2", true), ("-tls1_3", true)] {
      let client = try Subprocess.run(
        [
          "openssl", "s_client", version, "-connect", "localhost:\(broker.mosquitto.port)", "-CAfile",
          broker.rider.authority,
          "-verify_return_error",
        ], environment: environment)
      #expect(client.printed.contains("Cipher is (NONE)") != isSpoken, "\(version): \(client.printed)")
    }
  }

  @Test("does not start from a folder that was moved, and does once that was said")
  func relocation() throws {
    let port = try Port.unused()
    let vehicle = try folder.vehicle(at: .local(port))
    _ = try vehicle.provisionToken(.sample(), now: now, force: false)
    // With all that people put into the names of folders.
    let moved = VehicleFolder("\(folder.path)/a vehicle, # 2 (\"Ω\")")
    _ = try check("rename") { rename(vehicle.path, moved.path) }
    let failing = try Subprocess.run(["mosquitto", "-c", "\(moved.path)/mosquitto.conf"])
    #expect(failing.status != 0 && failing.printed.contains("Unable to open acl_file"), "\(failing.printed)")

    try moved.relocate()
    let broker = try VehicleBroker(moved, port: port)
    #expect(try connects(broker, as: broker.rider))
  }

  @Test("takes up renewed certificates, which riders believe as they did the old ones")
  func renewal() throws {
    let port = try Port.unused()
    let vehicle = try folder.vehicle(at: .local(port))
    try vehicle.endCertificate("tls/broker.pem", "broker", for: .server(alternativeNames: "DNS:localhost"))
    _ = try vehicle.provisionToken(.sample(), now: now, force: false)
    do {
      let broker = try VehicleBroker(vehicle, port: port)
      #expect(try !connects(broker, as: broker.rider))
    }
    #expect(try vehicle.renewCertificates(now: now) == now + 825 * day)
    let broker = try VehicleBroker(vehicle, port: port)
    #expect(try connects(broker, as: broker.rider))
    #expect(try connects(broker, as: broker.controller))
  }

  static let isRoot = geteuid() == 0

  @Test(
    "runs as Debian's user for it, or as another owner of its key, when root made the vehicle and starts it",
    .enabled(if: isRoot && getpwnam("mosquitto") != nil, "needs root and Debian's user mosquitto"))
  func user() throws {
    chmod(folder.path, 0o755)
    let port = try Port.unused()
    let vehicle = try folder.vehicle(at: .local(port))
    _ = try vehicle.provisionToken(.sample(), now: now, force: false)
    let user = try #require(getpwnam("mosquitto")).pointee.pw_uid
    let configuration = "\(vehicle.path)/mosquitto.conf"
    #expect(try TemporaryFolder.text(configuration).hasSuffix("\nuser mosquitto\n"))
    // Given back to root, it is nobody's to run as.
    _ = try check("chown") { chown("\(vehicle.path)/tls/broker.key", 0, gid_t.max) }
    try vehicle.relocate()
    #expect(try !TemporaryFolder.text(configuration).contains("\nuser "))
    _ = try check("chown") { chown("\(vehicle.path)/tls/broker.key", user, gid_t.max) }
    try vehicle.relocate()
    let broker = try VehicleBroker(vehicle, port: port)
    #expect(try connects(broker, as: broker.rider))
    var status = stat()
    _ = try check("stat") { stat("/proc/\(broker.mosquitto.id)", &status) }
    #expect(status.st_uid == user)
  }

  @Test(
    "runs as the user who provisioned, when that is not root",
    .enabled(if: isRoot && Subprocess.isInstalled("setpriv"), "needs root, to become another user"))
  func ordinaryUser() throws {
    chmod(folder.path, 0o755)
    let port = try Port.unused()
    let vehicle = try folder.vehicle(at: .local(port))
    let user: uid_t = 65534
    _ = try Subprocess.run(["chown", "-R", "\(user)", vehicle.path])
    try vehicle.relocate()
    let process = try Subprocess(
      [
        "setpriv", "--reuid", "\(user)", "--regid", "\(user)", "--clear-groups", "mosquitto", "-c",
        "\(vehicle.path)/mosquitto.conf",
      ])
    #expect(process.waits(for: " running\n"), "\(process.printed)")
  }
}
