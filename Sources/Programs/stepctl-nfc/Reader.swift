import CNFC
import Glibc
import SystemIO
import Tags

/// The only owner of a libnfc context and of the open reader.
///
/// The context is never freed: `nfc_exit` breaks the log of other contexts, and the process ends anyway.
final class Reader {
  private let context: OpaquePointer
  private var device: OpaquePointer?

  /// - Returns: nil if libnfc has no memory for a context.
  init?() {
    var context: OpaquePointer?
    nfc_init(&context)
    guard let context else { return nil }
    self.context = context
  }

  deinit { nfc_close(device) }

  func answer(_ request: NFCRequest) -> NFCReply {
    switch request {
    case .find: find()
    case .open(let connection): open(connection)
    case .select: select()
    case .exchange(let command, let framing): exchange(command, framing)
    case .restart: restart()
    }
  }

  /// The first reader in libnfc's list, which `nfc_open` uses without a connection string.
  private func find() -> NFCReply {
    withUnsafeTemporaryAllocation(byteCount: Int(NFC_BUFSIZE_CONNSTRING), alignment: 1) { buffer in
      let list = buffer.assumingMemoryBound(to: nfc_connstring.self)
      guard nfc_list_devices(context, list.baseAddress!, 1) > 0 else { return .nothing }
      let text = String(decoding: buffer.prefix { $0 != 0 }, as: UTF8.self)
      return text.isEmpty ? .nothing : .found(connection: text)
    }
  }

  private func open(_ connection: String) -> NFCReply {
    guard connection.utf8.count < Int(NFC_BUFSIZE_CONNSTRING) else { return .failed(code: NFCReply.noSuchDevice) }
    nfc_close(device)
    device = nfc_open(context, connection)
    guard let device else { return .failed(code: NFCReply.noSuchDevice) }
    // Reading tags from here on needs no privileges.
    guard (try? Confinement.dropPrivileges()) != nil else { return .failed(code: NFCReply.noSuchDevice) }
    return start(device)
  }

  /// Switches on the field.
  private func start(_ device: OpaquePointer) -> NFCReply {
    var result = nfc_initiator_init(device)
    // The search must end: by default libnfc waits forever at an empty field.
    if result >= 0 { result = nfc_device_set_property_bool(device, NP_INFINITE_SELECT, false) }
    return result < 0 ? failure(result) : .opened
  }

  private func restart() -> NFCReply {
    guard let device else { return .failed(code: NFCReply.noSuchDevice) }
    let result = nfc_device_set_property_bool(device, NP_ACTIVATE_FIELD, false)
    guard result >= 0 else { return failure(result) }
    usleep(Self.darkness)
    return start(device)
  }

  /// Microseconds without a field, after which every tag has forgotten everything: twice the time that it takes
  /// (ISO 14443-3, 5).
  private static let darkness: UInt32 = 10_000

  private func select() -> NFCReply {
    guard let device else { return .failed(code: NFCReply.noSuchDevice) }
    var target = nfc_target()
    let modulation = nfc_modulation(nmt: NMT_ISO14443A, nbr: NBR_106)
    let result = nfc_initiator_select_passive_target(device, modulation, nil, 0, &target)
    guard result > 0 else { return result == 0 ? .nothing : failure(result) }
    return NFCTarget(target.nti.nai).map(NFCReply.selected) ?? .nothing
  }

  private func exchange(_ command: [UInt8], _ framing: NFCRequest.Framing) -> NFCReply {
    guard let device else { return .failed(code: NFCReply.noSuchDevice) }
    // This property is only libnfc's own, and sends no command to the chip.
    var result = nfc_device_set_property_bool(device, NP_EASY_FRAMING, framing == .easy)
    var answer = [UInt8](repeating: 0, count: Self.longestAnswer)
    if result >= 0 {
      result = nfc_initiator_transceive_bytes(
        device, command, command.count, &answer, answer.count, Self.patience)
    }
    return result < 0 ? failure(result) : .received(Array(answer.prefix(Int(result))))
  }

  /// Size of the longest answer that a PN532 gives in one frame, bytes (User Manual 6.2.1.2).
  private static let longestAnswer = 264
  /// Milliseconds for one exchange: ISO 14443-4 tags may ask for more time while they write.
  private static let patience: Int32 = 1000

  private func failure(_ result: Int32) -> NFCReply { .failed(code: Int8(clamping: result)) }
}

extension NFCTarget {
  fileprivate init?(_ info: nfc_iso14443a_info) {
    // libnfc copies these lengths from the chip without a check.
    guard info.szUidLen <= 10, info.szAtsLen <= 254 else { return nil }
    func bytes<Tuple>(_ tuple: Tuple, _ count: Int) -> [UInt8] {
      withUnsafeBytes(of: tuple) { Array($0.prefix(count)) }
    }
    self.init(
      atqa: bytes(info.abtAtqa, 2), sak: info.btSak, uid: bytes(info.abtUid, info.szUidLen),
      ats: bytes(info.abtAts, info.szAtsLen))
  }
}
