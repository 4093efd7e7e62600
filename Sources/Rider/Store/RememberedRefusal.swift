package import Domain
import Encoding
import Glibc
import SystemIO
package import UserSettings

/// The last refusal of a vehicle, as this device remembers it: `refused.json` in the user's folder for what programs
/// remember. Nothing in it is secret.
package struct RememberedRefusal: Equatable, Sendable {
  /// Unix time, by this computer's clock.
  package let time: Int64
  package let vehicle: UUID
  package let refusal: Refusal
  /// The id of the token that was refused.
  package let token: String
  /// The id of the booking that was active then.
  package let booking: String?

  package init(time: Int64, vehicle: UUID, refusal: Refusal, token: String, booking: String?) {
    self.time = time
    self.vehicle = vehicle
    self.refusal = refusal
    self.token = token
    self.booking = booking
  }

  /// The file holds one refusal. A file that cannot be read is none.
  package init?(in folders: ConfigurationFolders) {
    guard let path = Self.path(in: folders), Files.exists(path), let bytes = try? Files.readRegular(path, limit: 4096),
      let json = try? JSON(parsing: bytes), let time = json["time"]?.integer,
      let vehicle = json["vehicle"]?.string.flatMap({ UUID($0) }),
      let code = json["refusal"]?.string.flatMap({ RefusalCode(rawValue: $0) }), let retry = json["retry"]?.bool,
      let token = json["token"]?.string
    else { return nil }
    self.init(
      time: time, vehicle: vehicle, refusal: Refusal(code, retryCanHelp: retry), token: token,
      booking: json["booking"]?.string)
  }

  /// A convenience: if it cannot be written, nobody is told of it later.
  package func keep(in folders: ConfigurationFolders) {
    guard let path = Self.path(in: folders) else { return }
    let json: JSON = [
      "time": .integer(time), "vehicle": .string(vehicle.description), "refusal": .string(refusal.code.rawValue),
      "retry": .bool(refusal.retryCanHelp), "token": .string(token), "booking": booking.map(JSON.string) ?? .null,
    ]
    try? Files.createFolder(Files.parent(of: path), mode: 0o700)
    try? Files.replace(path, with: (json.text + "\n").utf8, mode: 0o600, isDurable: false)
  }

  /// Forgets the last refusal if it was this vehicle's.
  package static func forget(of vehicle: UUID, in folders: ConfigurationFolders) {
    guard let path = path(in: folders), RememberedRefusal(in: folders)?.vehicle == vehicle else { return }
    unlink(path)
  }

  private static func path(in folders: ConfigurationFolders) -> String? {
    folders.state.map { "\($0)/refused.json" }
  }
}
