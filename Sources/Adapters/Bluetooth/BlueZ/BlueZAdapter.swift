import Synchronization
import SystemIO

/// An adapter as bluetoothd offers it to everybody, on a connection of its own to the system bus.
final class BlueZAdapter {
  private static let service = "org.bluez"
  static let device = "org.bluez.Device1"
  static let objectManager = "org.freedesktop.DBus.ObjectManager"
  private static let interface = "org.bluez.Adapter1"
  /// Held while a scan begins or ends. bluetoothd (5.66, `adapter->client`) remembers one program that waits for that,
  /// and never answers another one that asks meanwhile.
  private static let changesScan = Mutex<Void>(())

  /// As it was typed: `bluez:hci0`.
  let name: String
  /// The adapter's own name: `hci0`.
  let kernelName: String
  let path: String
  private let bus: SystemBus
  /// When there was last nothing to read: everything that is read now came later.
  var emptied: Instant { bus.emptied }

  /// - Parameters:
  ///   - number: the number in `bluez:hci0`.
  ///   - answer: answers bluetoothd's questions; returns false if there is no answer.
  init(
    _ number: UInt16, _ interruption: Interruption?,
    answer: @escaping (SystemBus, BusMessage) -> Bool = { _, _ in false }
  ) throws(RadioError) {
    name = RadioSpec.bluez(number).description
    kernelName = RadioSpec.hci(number).description
    path = "/org/bluez/\(kernelName)"
    do { bus = try SystemBus(interruption, answer: answer) } catch { throw RadioError(error, radio: name) }
  }

  /// Calls a method of the adapter, or of another object of bluetoothd.
  func call(
    _ method: String, of interface: String = BlueZAdapter.interface, at path: String? = nil,
    timeout: Duration = .seconds(5), _ arguments: (BusMessage) -> Void = { _ in }
  ) throws(RadioError) -> BusMessage {
    do {
      return try bus.call(
        method, of: interface, at: path ?? self.path, on: Self.service, timeout: timeout, arguments)
    } catch {
      throw RadioError(error, radio: name, method: method)
    }
  }

  /// Begins to receive bluetoothd's signals that fit a rule.
  func watch(_ rule: String) throws(RadioError) {
    do {
      _ = try bus.call(
        "AddMatch", of: "org.freedesktop.DBus", at: "/org/freedesktop/DBus", on: "org.freedesktop.DBus"
      ) { $0.append("type='signal',sender='\(Self.service)',\(rule)") }
    } catch {
      throw RadioError(error, radio: name)
    }
  }

  /// - Returns: nil when the deadline passed and no message waits.
  func receive(until deadline: Instant?) throws(RadioError) -> BusMessage? {
    do { return try bus.receive(until: deadline) } catch { throw RadioError(error, radio: name) }
  }

  /// Starts a scan for Low Energy devices, or changes the one of this connection.
  ///
  /// - Returns: bluetoothd's unique name on the bus.
  @discardableResult
  func discover(_ filter: [(String, (BusMessage) -> Void)] = []) throws(RadioError) -> String {
    let transport = ("Transport", { (message: BusMessage) in message.append("v", of: "s") { message.append("le") } })
    return try Self.changesScan.withLock { (_: inout Void) throws(RadioError) -> String in
      let reply = try call("SetDiscoveryFilter") { $0.append([transport] + filter) }
      do throws(RadioError) {
        _ = try call("StartDiscovery")
      } catch .bluetoothd(_, _, "org.bluez.Error.InProgress", _) {
        // Our own scan is in progress.
      }
      return reply.sender
    }
  }

  /// If this fails, the scan ends with the connection.
  func endDiscovery() {
    Self.changesScan.withLock { (_: inout Void) in _ = try? call("StopDiscovery", timeout: .seconds(1)) }
  }
}
