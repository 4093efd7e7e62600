package import SystemIO

/// The Bluetooth Low Energy features of a controller.
package struct ControllerAbilities: Sendable, Equatable {
  /// Whether it has Bluetooth 5's extended commands for scanning and advertising.
  package let isExtended: Bool
  /// How many beacons it can send at the same time.
  package let advertisingSets: Int
}

extension RadioSpec {
  /// Reads the abilities of an adapter of this machine, without changing anything.
  ///
  /// - Parameter interruption: ends every wait.
  /// - Returns: nil for other radios: a controller at the end of a stream would have to be reset first.
  /// - Throws: `RadioError`, as for opening.
  package func abilities(interruption: Interruption? = nil) throws(RadioError) -> ControllerAbilities? {
    guard case .hci(let index) = self else { return nil }
    return try HCIController(HCISocket(adapter: index, hears: false)).abilities(interruption)
  }
}

extension HCIController {
  /// Reads the controller's abilities. Initialises it first if no other program uses it.
  func abilities(_ interruption: Interruption?) throws(RadioError) -> ControllerAbilities {
    let isExtended = try initialize(interruption)
    let sets = isExtended ? try request(.readNumberOfAdvertisingSets, interruption).first ?? 0 : 1
    return ControllerAbilities(isExtended: isExtended, advertisingSets: Int(sets))
  }
}

extension HCIController {
  /// Prepares a controller that no other program uses for Low Energy commands and reports. The kernel has prepared a
  /// shared controller.
  ///
  /// - Returns: whether it has Bluetooth 5's extended commands for scanning and advertising.
  /// - Throws: also `RadioError.noLowEnergy`.
  func initialize(_ interruption: Interruption?) throws(RadioError) -> Bool {
    if needsInitialization {
      try request(.reset, interruption)
    }
    // LE Supported (Controller) is bit 38 (Core 5.4, Vol 2, Part C, 3.3).
    guard try Self.hasFeature(38, in: request(.readLocalSupportedFeatures, interruption)) else {
      throw .noLowEnergy(radio: name)
    }
    // LE Extended Advertising is bit 12 (Vol 6, Part B, 4.6).
    let extended = try Self.hasFeature(12, in: request(.leReadLocalSupportedFeatures, interruption))
    if needsInitialization {
      try request(.setEventMask, interruption)
      try request(.leSetEventMask(extended: extended), interruption)
    }
    return extended
  }

  private static func hasFeature(_ bit: Int, in features: ArraySlice<UInt8>) -> Bool {
    bit / 8 < features.count && features[features.startIndex + bit / 8] >> (bit % 8) & 1 == 1
  }
}
