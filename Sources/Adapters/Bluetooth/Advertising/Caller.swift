package import Domain
import Ranging
package import SystemIO

/// An adapter that calls a vehicle: it advertises one frame after the other, each with an address of its own where the
/// controller can, so that nobody follows the device by them.
///
/// Nobody can connect. **Threads.** It has none: one thread makes it, uses it and closes it.
package protocol Caller: AnyObject {
  /// Sends a frame from now on, in place of the one before.
  ///
  /// - Throws: `RadioError`; after any but `.interrupted` nothing may be on the air.
  func call(_ frame: UUID) throws(RadioError)

  /// Ends the sending, and waits for the controller or bluetoothd to confirm it (1 s at most for each command).
  ///
  /// Idempotent; `deinit` does the same. After it, nothing else may be called.
  func close()
}

extension RadioSpec {
  /// Prepares to call; nothing is on the air yet. The same adapter may scan meanwhile, but for a controller at the end
  /// of a stream, which has one connection.
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

/// A controller that calls by Bluetooth 5's commands or, where it has none of them, by the older ones.
final class HCICaller: Caller {
  /// Beacons of the same machine have those before it.
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
      // A program that was killed leaves the controller advertising, and then the controller accepts no parameters.
      end(timeout: .seconds(5), interruption)
      try prepare()
    }
    if extended {
      // Allowed while it sends, because nobody can connect (7.8.52).
      try controller.request(.setRandomAddress(Self.randomAddress(), set: Self.handle), interruption)
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

  /// Enables the set. Where it is enabled, the duration begins again, and only now the new address counts (7.8.56).
  private func enable(again: Bool) throws(RadioError) {
    let enable = HCICommand.setExtendedAdvertisingEnable(true, sets: [Self.handle], duration: Self.duration)
    do {
      try controller.request(enable, interruption)
    } catch .refused where again {
      // Some controllers refuse this with 0x0C when it is already on.
      try controller.request(.setExtendedAdvertisingEnable(false, sets: [Self.handle]), interruption)
      try controller.request(enable, interruption)
    }
  }

  func close() {
    guard isOn else { return }
    isOn = false
    end(timeout: .seconds(1), nil)
  }

  private func prepare() throws(RadioError) {
    guard !extended else {
      try controller.request(.setExtendedAdvertisingParameters(set: Self.handle), interruption)
      return
    }
    let address = HCICommand.setRandomAddress(Self.randomAddress())
    do {
      try controller.request(address, interruption)
    } catch .refused {
      // While it scans, an old controller takes no new address (7.8.4). The adapter's own would name the device for
      // ever, so the scan pauses. The kernel takes note of the address, and sets its own before it uses one.
      try controller.request(.setScanEnable(false, extended: false), interruption)
      defer { _ = try? controller.request(.setScanEnable(true, extended: false), interruption) }
      try controller.request(address, interruption)
    }
    try controller.request(.setAdvertisingParameters(.random), interruption)
  }

  /// Ends the advertising if it is on; failures are ignored.
  private func end(timeout: Duration, _ interruption: Interruption?) {
    guard extended else {
      _ = try? controller.request(.setAdvertisingEnable(false), timeout: timeout, interruption)
      return
    }
    for command in [
      HCICommand.setExtendedAdvertisingEnable(false, sets: [Self.handle]), .removeAdvertisingSet(Self.handle),
    ] {
      do {
        try controller.request(command, timeout: timeout, interruption)
      } catch .refused {
        // The set does not exist.
      } catch {
        return
      }
    }
  }

  /// 46 random bits; the two highest say that it is a private one that nobody can resolve (Core 5.4, Vol 6, Part B,
  /// 1.3.2.2).
  private static func randomAddress() -> [UInt8] {
    var address = (0..<6).map { _ in UInt8.random(in: 0...255) }
    address[5] &= 0x3F
    return address
  }
}
