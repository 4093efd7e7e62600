package import Domain
import Ranging
package import SystemIO

/// An adapter that calls a vehicle: it advertises one frame after the other. If the controller can, each frame has a
/// new address, so that nobody can follow the device by its addresses.
///
/// Nobody can connect. **Threads.** It has no threads: one thread creates, uses and closes it.
package protocol Caller: AnyObject {
  /// Sends a frame from now on, in place of the one before.
  ///
  /// - Throws: `RadioError`; after any error except `.interrupted` nothing may be on the air.
  func call(_ frame: UUID) throws(RadioError)

  /// Ends the sending, and waits for the controller or bluetoothd to confirm it (1 s at most for each command).
  ///
  /// Idempotent; `deinit` does the same. After that, no other method may be called.
  func close()
}

extension RadioSpec {
  /// Prepares to call; nothing is on the air yet. The same adapter may scan meanwhile, except a controller at the end
  /// of a stream, which has only one connection.
  ///
  /// - Throws: `RadioError`, also `cannotAdvertise` and `tooFewSets`.
  package func caller(interruption: Interruption? = nil) throws(RadioError) -> any Caller {
    switch self {
    case .hci(let index): try HCICaller(HCISocket(adapter: index, hears: false), interruption)
    case .h4(let address): try HCICaller(H4Stream(connectingTo: address, interruption), interruption)
    case .bluez(let index): try BlueZCaller(adapter: index, interruption)
    case .btsnoop: throw .cannotAdvertise(radio: description)
    }
  }
}

/// A controller that calls with Bluetooth 5's commands or, if it lacks them, with the older ones.
final class HCICaller: Caller {
  /// The beacons of the same machine have the handles before it.
  private static let handle: UInt8 = 0xE8
  /// How long a frame is sent if nothing follows, because the program was killed: 10 s, in units of 10 ms.
  private static let duration: UInt16 = 1000

  private let controller: HCIController
  private let interruption: Interruption?
  private let extended: Bool
  private var isOn = false

  init(_ link: any HCILink, _ interruption: Interruption?) throws(RadioError) {
    controller = HCIController(link)
    self.interruption = interruption
    let abilities = try controller.abilities(interruption)
    extended = abilities.isExtended
    try abilities.check(1, radio: controller.name)
  }

  deinit { close() }

  func call(_ frame: UUID) throws(RadioError) {
    let data = CallFrame.advertisingData(frame)
    let wasOn = isOn
    if !wasOn {
      // A killed program leaves the controller advertising, and then the controller accepts no parameters.
      controller.endAdvertising([Self.handle], extended: extended, timeout: .seconds(5), interruption)
      try prepare()
    }
    if extended {
      // Allowed while it sends, because the set is not connectable (7.8.52).
      try controller.request(.setRandomAddress(RandomAddress.makeNonResolvable(), set: Self.handle), interruption)
      try controller.request(.setExtendedAdvertisingData(data, set: Self.handle), interruption)
    } else {
      try controller.request(.setAdvertisingData(data), interruption)
    }
    // From here on it may be advertising, even if no answer comes.
    isOn = true
    if extended {
      try enable(again: wasOn)
    } else if !wasOn {
      try controller.request(.setAdvertisingEnable(true), interruption)
    }
  }

  /// Enables the set. If it is already enabled, the duration starts again, and the new address takes effect now
  /// (7.8.56).
  private func enable(again: Bool) throws(RadioError) {
    let enable = HCICommand.setExtendedAdvertisingEnable(true, sets: [Self.handle], duration: Self.duration)
    do {
      try controller.request(enable, interruption)
    } catch .refused where again {
      // Some controllers refuse this with 0x0C if the set is already enabled.
      try controller.request(.setExtendedAdvertisingEnable(false, sets: [Self.handle]), interruption)
      try controller.request(enable, interruption)
    }
  }

  func close() {
    guard isOn else { return }
    isOn = false
    controller.endAdvertising([Self.handle], extended: extended, timeout: .seconds(1), nil)
  }

  private func prepare() throws(RadioError) {
    guard !extended else {
      try controller.request(.setExtendedAdvertisingParameters(set: Self.handle), interruption)
      return
    }
    let address = HCICommand.setRandomAddress(RandomAddress.makeNonResolvable())
    do {
      try controller.request(address, interruption)
    } catch .refused {
      // While it scans, an old controller accepts no new address (7.8.4). The adapter's own address would identify the
      // device permanently, so the scan pauses. The kernel notes the address, and sets its own before it uses one.
      try controller.request(.setScanEnable(false, extended: false), interruption)
      defer { _ = try? controller.request(.setScanEnable(true, extended: false), interruption) }
      try controller.request(address, interruption)
    }
    try controller.request(.setAdvertisingParameters(.random), interruption)
  }
}
