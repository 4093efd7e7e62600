import Access
import Domain
import Encoding
import Foundation
import MQTT
import Rider
import StepProtocol

/// A kiosk beside a vehicle: a rider shows the label on a step to it, and the kiosk opens that step.
///
///     kiosk VEHICLE.code RIDER-FOLDER LABEL
///
/// It needs to know: the vehicle's signed code (`stepctl provision qr`), the files that the operator made for the
/// rider, and what the label says. Everything else is in the library.
@main enum Kiosk {
  static func main() throws {
    let arguments = CommandLine.arguments.dropFirst()
    guard arguments.count == 3, let code = arguments.first, let label = arguments.last else {
      print("usage: kiosk VEHICLE.code RIDER-FOLDER LABEL")
      exit(64)
    }
    let rider = arguments[arguments.startIndex + 1]
    do {
      try open(text(code), rider: rider, label: label)
    } catch let error as any Failure {
      print("kiosk: \(error)")
      exit(error.exitStatus.rawValue)
    }
  }

  private static func open(_ code: String, rider: String, label: String) throws {
    let (vehicle, _) = try VehicleCode.verify(code, now: Int64(Date.now.timeIntervalSince1970))
    let access = try RiderAccess(
      vehicle: vehicle.vehicle, topic: vehicle.topic,
      broker: Broker(
        host: vehicle.host, port: vehicle.port,
        tls: .init(
          authority: "\(rider)/ca.pem",
          identity: .init(certificate: "\(rider)/rider.pem", key: "\(rider)/rider.key"))),
      encryptionKey: vehicle.encryptionKey, statementKey: vehicle.signingKey,
      device: SigningKey(jwk: JSON(parsing: text("\(rider)/device.jwk").utf8)), token: text("\(rider)/token.jwt"))
    guard let step = try StepLabel(parsing: label).step(in: access.vehicle) else {
      print("kiosk: the label is not one of \(access.vehicle.name)")
      exit(3)
    }
    let client = try RiderClient(access, steps: [step.id])
    defer { client.close() }
    let statement = try client.perform([.move(.open, Sighting(code: label, of: step, found: .now))])[0]
    print("the \(statement.step) step is \(statement.position.state)")
  }

  private static func text(_ path: String) throws -> String {
    try String(contentsOfFile: path, encoding: .utf8).trimmingCharacters(in: .whitespacesAndNewlines)
  }
}
