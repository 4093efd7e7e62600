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

  /// Puts beacons on the air: when this returns, they are.
  ///
  /// - Parameters:
  ///   - beacons: one or two.
  ///   - interruption: what ends every wait.
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

  /// Finds out, without changing anything about it, whether an adapter of this machine could be so many beacons.
  ///
  /// A controller at the end of a stream would have to be reset before it can be asked, so it is not.
  package func checkAdvertising(_ beacons: Int) throws(RadioError) {
    guard case .hci(let index) = self else { return }
    let controller = HCIController(try HCISocket(adapter: index, hears: false))
    _ = try controller.initialize(forBeacons: beacons, nil)
  }
}

extension HCIController {
  /// As `initialize`, for a controller that is to be so many beacons at a time.
  func initialize(forBeacons beacons: Int, _ interruption: Interruption?) throws(RadioError) -> Bool {
    let extended = try initialize(interruption)
    let sets = extended ? try request(.readNumberOfAdvertisingSets, interruption).first ?? 0 : 1
    guard sets >= beacons else { throw .tooFewSets(radio: name, sets: Int(sets), beacons: beacons) }
    return extended
  }
}
