package import Ranging
package import SystemIO

extension RadioSpec {
  /// Whether `advertise` can succeed.
  package var canAdvertise: Bool {
    switch self {
    case .hci, .h4: true
    default: false
    }
  }

  /// Sends beacons: when this returns, they are on the air.
  ///
  /// - Parameters:
  ///   - beacons: one or two.
  ///   - interruption: ends every wait.
  /// - Throws: `RadioError`, also `cannotAdvertise` and `tooFewSets`.
  package func advertise(
    _ beacons: [IBeacon], interruption: Interruption? = nil
  ) throws(RadioError) -> Advertiser {
    switch self {
    case .hci(let index):
      try Advertiser(HCISocket(adapter: index, hears: false), beacons, interruption)
    case .h4(let address):
      try Advertiser(H4Stream(connectingTo: address, interruption), beacons, interruption)
    default:
      throw .cannotAdvertise(radio: description)
    }
  }

  /// Finds out, without changing anything, whether an adapter of this machine could send that many beacons.
  package func checkAdvertising(_ beacons: Int) throws(RadioError) {
    try abilities()?.check(beacons, radio: description)
  }
}

extension ControllerAbilities {
  /// - Throws: `RadioError.tooFewSets`.
  func check(_ beacons: Int, radio: String) throws(RadioError) {
    guard advertisingSets >= beacons else {
      throw .tooFewSets(radio: radio, sets: advertisingSets, beacons: beacons)
    }
  }
}
