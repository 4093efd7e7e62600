import Configuration
import Domain

extension VehicleFile {
  /// With other names for the files that it names.
  func renamed(_ names: [String: String]) -> VehicleFile {
    mapping { names[$0] ?? $0 }
  }

  /// With paths in a folder written from there.
  func named(from folder: String) -> VehicleFile {
    mapping { $0.hasPrefix("\(folder)/") ? String($0.dropFirst(folder.count + 1)) : $0 }
  }

  private func mapping(_ name: (String) -> String) -> VehicleFile {
    var file = self
    if let broker { file.broker = Broker(host: broker.host, port: broker.port, ca: name(broker.ca)) }
    if let certificate {
      file.certificate = ClientCertificate(cert: name(certificate.cert), key: name(certificate.key))
    }
    if let rider {
      file.rider = Rider(name: rider.name, deviceKey: name(rider.deviceKey), token: name(rider.token))
    }
    return file
  }

  var fileNames: Set<String> {
    Set([broker?.ca, certificate?.cert, certificate?.key, rider?.deviceKey, rider?.token].compactMap { $0 })
  }

  /// With what the user had besides: who they are, what they measured, and what they trust.
  func keeping(_ known: VehicleFile) -> VehicleFile {
    var file = self
    file.operatorKey = operatorKey ?? known.operatorKey
    file.signed = [signed, known.signed].compactMap { $0 }.max()
    file.certificate = certificate ?? known.certificate
    file.rider = rider ?? known.rider
    let tags = Set(vehicle.steps.flatMap(\.tags))
    let steps = vehicle.steps.map { step in
      var step = step
      if let before = known.vehicle.step(step.id) {
        step.measuredPower = step.measuredPower ?? before.measuredPower
        if step.tags.isEmpty { step.tags = before.tags.filter { !tags.contains($0) } }
      }
      return step
    }
    // The same ids, sides and majors as before, and no tag twice.
    file.vehicle = try! Vehicle(name: vehicle.name, uuid: vehicle.uuid, steps: steps)
    return file
  }
}
