import Bluetooth
import Domain
import Glibc
import MQTT
import Provisioning
import SystemIO
import Terminal

extension StepctlCommand {
  /// What the errors of the modules mean for the one who typed the command.
  package static func explain(_ error: any Error) -> any Error {
    switch error {
    case RadioError.interrupted, RiderSession.Failure.interrupted:
      Interrupted()
    case let error as RadioError: CommandFailure(error)
    case let error as MQTTError: CommandFailure(error)
    case let error as ProvisioningError: CommandFailure(error)
    case RiderSession.Failure.timedOut:
      CommandFailure(
        .unavailable, "the vehicle does not answer; nothing was sent that could move a step",
        hint: "is stepd running, and is this vehicle file its own?")
    case RiderSession.Failure.connection(let error): CommandFailure(error)
    case RiderSession.Failure.system(let error): CommandFailure(error)
    default: error
    }
  }
}

extension CommandFailure {
  init(_ error: RadioError) {
    switch error {
    case .file(let error): self.init(error)
    case .notACapture, .damaged: self.init(.badData, error.description)
    case .notPermitted(let radio, _):
      self.init(
        .noPermission, error.description, hint: "where bluetoothd runs, --radio bluez:\(radio) needs no permission")
    case .notAuthorized: self.init(.noPermission, error.description)
    case .noBluetooth, .noAdapter:
      self.init(.unavailable, error.description, hint: "`stepctl doctor` says which radios there are")
    case .adapterDown, .adapterInUse, .refused, .noAnswer:
      self.init(.unavailable, error.description, hint: "`stepctl doctor` looks for the reason")
    default: self.init(.unavailable, error.description)
    }
  }

  init(_ error: ProvisioningError) {
    switch error {
    case .system(let error): self.init(error)
    case .configuration(let error): self.init(error)
    case .unusableName, .noSuchStep, .unusableLifetime, .outlivesAuthority: self.init(.usage, error.description)
    case .unusablePath: self.init(.usage, error.description)
    case .openSSL, .token, .otherOperator, .notSigned, .outdated: self.init(.badData, error.description)
    case .unusableVehicleName, .nameTaken, .knownAs: self.init(.usage, error.description)
    case .noHome, .tagOfAnotherStep, .tooManyTags: self.init(.configuration, error.description)
    default: self.init(.failure, error.description)
    }
  }
}
