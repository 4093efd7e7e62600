import Bluetooth
import Configuration
import Domain
import SystemIO

extension Daemon {
  /// Begins to send the beacons of every step that has an adapter.
  ///
  /// - Throws: what will not mend itself. An adapter that is missing or switched off is tried again instead.
  func startBeacons(_ interruption: Interruption, _ log: (Log.Priority, String) -> Void) throws(Failure)
    -> [BeaconSender]
  {
    var senders: [BeaconSender] = []
    for plan in beaconPlans {
      if plan.steps.count > 1 {
        log(.warning, "\(plan.names): \(plan.radio) sends all of these beacons, so nobody can tell the sides by them")
      }
      do {
        senders.append(try BeaconSender(plan, interruption))
      } catch {
        for sender in senders { sender.close() }
        switch error {
        case let error as RadioError: throw .beacon(error)
        case let error as SystemError: throw .system(error)
        default: preconditionFailure("\(error)")
        }
      }
    }
    return senders
  }

  /// Asks adapters of this machine whether they can be the beacons that they are to be.
  func checkBeacons() throws(Failure) {
    do throws(RadioError) {
      for plan in beaconPlans { try plan.radio.checkAdvertising(plan.steps.count) }
    } catch {
      throw .beacon(error)
    }
  }
}

extension BeaconSender {
  /// What is to be logged of what has happened.
  var news: [(Log.Priority, String)] {
    var lines: [(Log.Priority, String)] = []
    while let event = next() {
      switch event {
      case .sending: lines.append((.notice, "\(plan.names): on the air with \(plan.radio)"))
      case .failed(let error): lines.append((.warning, "\(plan.names): off the air: \(error); trying again"))
      }
    }
    return lines
  }
}

extension BeaconPlan {
  fileprivate var names: String { steps.map(\.description).joined(separator: ", ") }
}
