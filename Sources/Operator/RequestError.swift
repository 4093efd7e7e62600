package import Domain
package import StepProtocol

/// Why a device's request or a vehicle's admission is not accepted.
package enum RequestError: Failure, Equatable {
  case malformed(ProtocolError)
  /// The name in the request cannot be a rider's.
  case unusableName(String)
  /// The name in the request belongs to another device.
  case nameTaken(String)
  /// A part of the fleet server's answer to a new vehicle is missing or cannot be used.
  case unusableAdmission(String)

  package var exitStatus: ExitStatus {
    switch self {
    case .malformed, .unusableAdmission: .badData
    case .unusableName, .nameTaken: .usage
    }
  }

  package var description: String {
    switch self {
    case .malformed(let error): "not a device's request, or a damaged one: \(error)"
    case .unusableName(let name): "\(name): not a rider's name"
    case .nameTaken(let name): "\(name) has another device already"
    case .unusableAdmission(let part): "the server's answer to the vehicle is not understood: \(part)"
    }
  }

  package var hint: String? {
    switch self {
    case .malformed: "ask the rider for the text that `stepctl enroll` prints"
    case .unusableName: "use --rider: letters, digits, dots, hyphens and underscores"
    case .nameTaken(let name): "use --rider \(name) if the device is the same rider's, or --rider with another name"
    case .unusableAdmission: "nothing was written; the operator has to give another code"
    }
  }
}
