import Domain
import SystemIO

/// An adapter that calls through bluetoothd, without any privilege (BlueZ's doc/advertising-api.txt).
///
/// Each frame is a separate advertisement of type `broadcast`: the kernel gives each one a new non-resolvable address.
final class BlueZCaller: Caller {
  private static let manager = "org.bluez.LEAdvertisingManager1"
  private static let advertisement = "org.bluez.LEAdvertisement1"
  private static let properties = "org.freedesktop.DBus.Properties"
  /// Milliseconds between two packets. The kernel's default, 1.28 s, would allow only three in a call.
  private static let interval: UInt32 = 100

  private let adapter: BlueZAdapter
  private let content = Content()
  private var number = 0
  private var registered: String?

  /// The answers to bluetoothd's questions.
  private final class Content {
    var frame: UUID?
    var path = ""
  }

  /// - Parameter number: the number in `bluez:hci0`.
  init(adapter number: UInt16, _ interruption: Interruption?) throws(RadioError) {
    adapter = try BlueZAdapter(number, interruption) { [content] bus, call in Self.answer(call, content, bus) }
  }

  deinit { close() }

  func call(_ frame: UUID) throws(RadioError) {
    if let registered {
      self.registered = nil
      _ = try adapter.call("UnregisterAdvertisement", of: Self.manager) { $0.append(path: registered) }
    }
    number += 1
    content.frame = frame
    content.path = "/stepctl/call\(number)"
    _ = try adapter.call("RegisterAdvertisement", of: Self.manager) { [content] message in
      message.append(path: content.path)
      message.append([])
    }
    registered = content.path
  }

  func close() {
    guard let registered else { return }
    self.registered = nil
    // If this fails, the advertisement ends with the connection.
    _ = try? adapter.call("UnregisterAdvertisement", of: Self.manager, timeout: .seconds(1)) {
      $0.append(path: registered)
    }
  }

  /// Anyone may ask, because the content is on the air.
  private static func answer(_ call: BusMessage, _ content: Content, _ bus: SystemBus) -> Bool {
    guard call.path == content.path, let frame = content.frame else { return false }
    // bluetoothd no longer needs the advertisement.
    if call.isCall(advertisement, "Release") {
      bus.reply(to: call)
      return true
    }
    guard call.isCall(properties, "GetAll") else { return false }
    bus.reply(to: call) { reply in
      reply.append([
        ("Type", { value in value.append("v", of: "s") { value.append("broadcast") } }),
        (
          "ServiceUUIDs",
          { value in value.append("v", of: "as") { value.append("a", of: "s") { value.append(frame.description) } } }
        ),
        ("MinInterval", { value in value.append("v", of: "u") { value.append(interval) } }),
        ("MaxInterval", { value in value.append("v", of: "u") { value.append(interval) } }),
      ])
    }
    return true
  }
}
