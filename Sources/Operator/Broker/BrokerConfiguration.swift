import Domain
import Encoding
import Glibc
import StepProtocol
import SystemIO

/// mosquitto.conf(5), for mosquitto 2.0.
struct BrokerConfiguration {
  /// The operator's folder, absolute.
  let folder: String
  let address: BrokerAddress
  /// The path of the plugin that says what clients may do; nil if the list says all.
  let plugin: String?
  /// The user that mosquitto becomes when root starts it; nil if that is root, or has no name.
  let user: String?

  /// The owner of a new broker's private key. A broker must not run as root; on Debian it runs as "mosquitto".
  static var owner: uid_t { geteuid() == 0 ? getpwnam("mosquitto")?.pointee.pw_uid ?? 0 : geteuid() }

  /// Gives a new broker's private key, and the folder where it keeps messages, to that owner.
  ///
  /// - Parameter folder: the operator's.
  static func giveAway(in folder: String) throws {
    guard owner != geteuid() else { return }
    for name in [VehiclePaths.brokerKey, VehiclePaths.data] {
      let path = "\(folder)/\(name)"
      let file = try Descriptor.open(path, O_RDONLY | O_NOFOLLOW)
      let number = file.number
      _ = try check("give away", path) { fchown(number, owner, gid_t.max) }
      try file.synchronize(path)
    }
  }

  /// Lets that owner enter the operator's folder, as its group, if root's group has it and root alone may enter it. No
  /// folder above is changed.
  static func letIn(to folder: String) throws {
    guard geteuid() == 0, let name = getpwuid(owner).map({ String(cString: $0.pointee.pw_name) }),
      let user = FileUser(named: name), let resolved = realpath(folder, nil)
    else { return }
    defer { free(resolved) }
    var status = stat()
    _ = try check("open", folder) { stat(folder, &status) }
    guard status.st_gid == 0,
      user.obstacle(to: "\(folder)/\(VehiclePaths.broker)", for: .read) == String(cString: resolved)
    else { return }
    _ = try check("give away", folder) { chown(folder, uid_t.max, user.group) }
    _ = try check("set the mode of", folder) { chmod(folder, status.st_mode & 0o7777 | 0o010) }
  }

  /// - Parameters:
  ///   - folder: any path of the operator's folder, which exists.
  ///   - owner: the owner of the broker's private key.
  init(folder: String, _ record: BrokerRecord, owner: uid_t) throws {
    guard let resolved = realpath(folder, nil) else { throw SystemError("find", folder) }
    defer { free(resolved) }
    guard let absolute = String(validatingCString: resolved), Self.canName(absolute),
      record.plugin.map({ $0.hasPrefix("/") && Self.canName($0) }) ?? true
    else { throw ProvisioningError.unusablePath }
    self.folder = absolute
    (address, plugin) = (record.address, record.plugin)
    user = owner == 0 ? nil : getpwuid(owner).map { String(cString: $0.pointee.pw_name) }
  }

  /// mosquitto refuses malformed UTF-8 (MQTT 3.1.1, 1.5.3), and a control character may end the line.
  private static func canName(_ path: String) -> Bool {
    path.unicodeScalars.allSatisfy {
      $0.properties.generalCategory != .control && !$0.properties.isNoncharacterCodePoint
    }
  }

  var text: String {
    """
    # The MQTT broker of an operator's vehicles, for mosquitto 2.0. Riders and controllers are its clients.
    #
    # Only this file has absolute paths: mosquitto looks for relative ones in its working folder. After this folder was
    # moved, `stepctl provision relocate DIR` writes this file again, without your changes to it.

    \(listener)

    # Mutual TLS, 1.2 or later. Without this line mosquitto 2.0.11 allows 1.1 where OpenSSL does.
    tls_version tlsv1.2
    cafile \(folder)/\(VehiclePaths.authorityCertificate)
    certfile \(folder)/\(VehiclePaths.brokerCertificate)
    keyfile \(folder)/\(VehiclePaths.brokerKey)
    require_certificate true
    # What `stepctl operator revoke` has revoked. mosquitto reads it again on SIGHUP.
    crlfile \(folder)/\(VehiclePaths.revocationList)

    # The certificate's common name is the client's user name: "operator", or a role and its vehicle, as "rider:UUID".
    use_identity_as_username true
    allow_anonymous false
    \(pluginLines)acl_file \(folder)/\(VehiclePaths.accessList)

    # A command has at most \(Command.maximumSize) bytes. Its topic and the packet's header need the rest.
    max_packet_size \(Command.maximumSize + 512)
    # Nagle's algorithm would delay each exchange by 44 ms.
    set_tcp_nodelay true
    # The operator's notices are kept over a restart, for vehicles that come later.
    persistence true
    persistence_location \(folder)/\(VehiclePaths.data)/
    \(savingLines)
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
    table inet stepctl_\(address.port) {}
    delete table inet stepctl_\(address.port)
    table inet stepctl_\(address.port) {
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
        iifname != "lo" tcp dport \(address.port) ct state new jump broker
      }
    }

    """
  }

  /// All files that the broker needs except certificates.
  func files(_ access: AccessList) -> [NewFile] {
    [located, access.file, NewFile(VehiclePaths.brokerLimits, Self.limits), NewFile(VehiclePaths.firewall, firewall)]
  }

  /// The one that has absolute paths.
  var located: NewFile { NewFile(VehiclePaths.broker, text) }

  /// mosquitto does not start if one of a name's addresses is not there: on a computer that has IPv4 alone or IPv6
  /// alone, `localhost` often has one. It takes the addresses that an interface has.
  private var listener: String {
    if address.host.isLocalName { return "listener \(address.port)\nbind_interface lo" }
    return "listener \(address.port)" + (address.host.loopbackAddress.map { " \($0)" } ?? "")
  }

  private var pluginLines: String {
    guard let plugin else { return "" }
    return """
      # What a client may do follows from its name and the topic's, for any number of vehicles. The list has those vehicles
      # that have topics of their own.
      plugin \(plugin)
      plugin_opt_removed \(folder)/\(VehiclePaths.formerVehicles)

      """
  }

  /// mosquitto writes all of its messages to the disk again, whatever has changed. With the plugin they are many, and
  /// the server sends all notices anew when it has lost its connection, because the broker may have lost some. What
  /// vehicles said in the last minute may be lost, too: a rider asks the vehicle itself.
  private var savingLines: String {
    plugin == nil
      ? "autosave_on_changes true\nautosave_interval 1" : "autosave_on_changes false\nautosave_interval 60"
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
