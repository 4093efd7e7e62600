import Domain
import FileFormats
import MQTT
import StepProtocol

extension VehicleFile {
  /// This vehicle file with the user's own data from the known one: identity, measurements, and trusted operator.
  func keeping(_ known: VehicleFile) -> VehicleFile {
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
