import Bluetooth
import Domain
import Glibc
import Ranging
import SystemIO
import Terminal

/// Recordings that were made before: a capture for each position.
struct CapturedPositions: PositionSource {
  let vehicle: Vehicle
  let folder: String
  let interruption: Interruption
  let console: Console

  init(vehicle: Vehicle, folder: String, interruption: Interruption, console: Console) throws {
    guard Files.isFolder(folder) else {
      throw SystemError("open", folder, code: Files.exists(folder) ? ENOTDIR : ENOENT)
    }
    self.vehicle = vehicle
    self.folder = folder
    self.interruption = interruption
    self.console = console
  }

  func record(_ step: Step, at position: CalibrationPosition) throws -> PositionRecording? {
    let path = "\(folder)/\(step.id)-\(position.distance.rawValue)-\(position.carry.rawValue).btsnoop"
    if access(path, F_OK) == -1, errno == ENOENT {
      console.note("there is no \(path)")
      return nil
    }
    let radio = try RadioSpec.btsnoop(path).open(interruption: interruption)
    defer { radio.close() }
    var recording = PositionRecording(of: step, at: position, among: vehicle.steps)
    _ = try recording.listen(to: radio, of: vehicle, until: nil)
    for flaw in recording.flaws { console.note("\(path)\(flaw.isFatal ? " is left out" : ""): \(flaw)") }
    return recording.flaws.contains(where: \.isFatal) ? nil : recording
  }
}
