package import Domain
import Glibc
package import SystemIO

/// Why there is no link to a vehicle, or no longer one.
package enum LinkError: Failure, Equatable {
  case radio(RadioError)
  /// Links need an adapter of this machine.
  case noAdapter(RadioSpec)
  /// No advertisement of the vehicle was heard.
  case notHeard
  /// The vehicle was heard, and no connection came about.
  case noConnection
  /// Nobody listens there, or this adapter was never set up for Low Energy.
  case notTaken
  /// The connection was lost: too far away, or the adapter is off.
  case outOfReach
  /// The other side ended the link.
  case ended
  /// The other side does not take what is sent.
  case stuck
  case system(SystemError)

  /// - Parameter code: what the kernel says, in its own words.
  init(_ code: Int32) {
    self =
      switch code {
      case ECONNREFUSED: .notTaken
      // 0x3E, "connection failed to be established", has no number of its own in the kernel.
      case ENOSYS, EHOSTDOWN: .noConnection
      case ETIMEDOUT, ECONNABORTED, ENOTCONN: .outOfReach
      case ECONNRESET, EPIPE: .ended
      default: .system(SystemError("use", "the Bluetooth link", code: code))
      }
  }

  package var exitStatus: ExitStatus {
    switch self {
    case .radio(let error): error.exitStatus
    case .noAdapter: .configuration
    case .system(let error): error.exitStatus
    case .notHeard, .noConnection, .notTaken, .outOfReach, .ended, .stuck: .unavailable
    }
  }

  package var description: String {
    switch self {
    case .radio(let error): error.description
    case .noAdapter(let radio): "\(radio) makes no Bluetooth links: that takes an adapter of this computer"
    case .notHeard: "the vehicle is not heard by Bluetooth"
    case .noConnection: "the vehicle is heard, and no Bluetooth connection comes about"
    case .notTaken: "the vehicle does not take Bluetooth links"
    case .outOfReach: "the Bluetooth link is lost"
    case .ended: "the vehicle ended the Bluetooth link"
    case .stuck: "the Bluetooth link is too slow"
    case .system(let error): error.description
    }
  }

  package var hint: String? {
    switch self {
    case .radio(let error): error.hint
    case .noAdapter: "name it: --via hci0"
    case .notHeard: "go closer; the vehicle may have no [link] in its stepd.toml, or only the network"
    case .noConnection, .outOfReach, .ended, .stuck: "go closer and try again"
    case .notTaken: "see whether stepd runs; an adapter beside bluetoothd has to be powered on there"
    case .system: nil
    }
  }

  /// Whether another attempt may succeed when the rider has come closer.
  package var mayPass: Bool {
    switch self {
    case .notHeard, .noConnection, .outOfReach, .ended, .stuck: true
    case .radio, .noAdapter, .notTaken, .system: false
    }
  }

  package var isInterruption: Bool { self == .radio(.interrupted) }
}
