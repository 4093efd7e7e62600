package import SystemIO

/// What a controller's Bluetooth Low Energy can do.
package struct ControllerAbilities: Sendable, Equatable {
  /// Whether it has Bluetooth 5's extended commands for scanning and advertising.
  package let isExtended: Bool
  /// How many beacons it can be at a time.
  package let advertisingSets: Int
}

extension RadioSpec {
  /// Asks an adapter of this machine what it can do, without changing anything about it.
  ///
  /// - Parameter interruption: what ends every wait.
  /// - Returns: nil for other radios. A controller at the end of a stream would have to be reset first.
  /// - Throws: `RadioError`, as when it is opened.
  package func abilities(interruption: Interruption? = nil) throws(RadioError) -> ControllerAbilities? {
    guard case .hci(let index) = self else { return nil }
    return try HCIController(HCISocket(adapter: index, hears: false)).abilities(interruption)
  }
}

extension HCIController {
  /// The same of a controller that may be initialised for it.
  func abilities(_ interruption: Interruption?) throws(RadioError) -> ControllerAbilities {
    let isExtended = try initialize(interruption)
    let sets = isExtended ? try request(.readNumberOfAdvertisingSets, interruption).first ?? 0 : 1
    return ControllerAbilities(isExtended: isExtended, advertisingSets: Int(sets))
  }
}
