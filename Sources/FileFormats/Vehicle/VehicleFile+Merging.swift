import Domain
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

  package var fileNames: Set<String> {
    let (tls, identity) = (broker?.tls, broker?.tls?.identity)
    return Set(
      [tls?.authority, identity?.certificate, identity?.key, rider?.deviceKey, rider?.token].compactMap { $0 })
  }

  /// This vehicle file with the user's own data from the known one: identity, measurements, and trusted operator.
  package func keeping(_ known: VehicleFile) -> VehicleFile {
    var file = self
    file.operatorKey = operatorKey ?? known.operatorKey
    file.signed = [signed, known.signed].compactMap { $0 }.max()
    file.broker?.tls?.identity = broker?.tls?.identity ?? known.broker?.tls?.identity
    file.rider = rider ?? known.rider
    file.place = place ?? known.place
    let tags = Set(vehicle.steps.flatMap(\.tags))
    let steps = vehicle.steps.map { step in
      var step = step
      if let before = known.vehicle.step(step.id) {
        step.measuredPower = step.measuredPower ?? before.measuredPower
        if step.tags.isEmpty { step.tags = before.tags.filter { !tags.contains($0) } }
      }
      return step
    }
    // Ids, sides and majors are unchanged, and no tag occurs twice.
    file.vehicle = try! Vehicle(name: vehicle.name, uuid: vehicle.uuid, steps: steps)
    return file
  }
}
