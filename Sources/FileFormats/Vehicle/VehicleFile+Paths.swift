import MQTT

extension VehicleFile {
  /// This vehicle file with new names for the files that it names.
  package func renamed(_ names: [String: String]) -> VehicleFile {
    mapping { names[$0] ?? $0 }
  }

  /// This vehicle file with paths relative to a folder.
  package func named(from folder: String) -> VehicleFile {
    mapping { $0.hasPrefix("\(folder)/") ? String($0.dropFirst(folder.count + 1)) : $0 }
  }

  private func mapping(_ name: (String) -> String) -> VehicleFile {
    var file = self
    if let tls = broker?.tls {
      let identity = tls.identity.map { Broker.Identity(certificate: name($0.certificate), key: name($0.key)) }
      file.broker?.tls = .init(authority: name(tls.authority), identity: identity)
    }
    if let rider {
      file.rider = Rider(name: rider.name, deviceKey: name(rider.deviceKey), token: name(rider.token))
    }
    return file
  }
}
