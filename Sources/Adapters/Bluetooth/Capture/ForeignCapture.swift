import Encoding

/// A file that is not btsnoop: what it is, and what converts it.
struct ForeignCapture {
  /// The file's first bytes.
  private let bytes: [UInt8]
  /// Whether no more bytes can be had.
  private let isAll: Bool

  /// The most bytes of a pcapng file in which link types are looked for.
  private static let longestHead = 65536

  /// - Parameter isAll: whether the file has no more bytes.
  init(_ bytes: [UInt8], isAll: Bool) {
    self.bytes = bytes
    self.isAll = isAll || bytes.count >= Self.longestHead
  }

  /// What the file is, as a sentence; nil if more bytes are needed to say it.
  var description: String? {
    switch bytes.prefix(4) {
    case [0x0A, 0x0D, 0x0D, 0x0A]:
      pcapngTypes.map { "it is pcapng" + Self.conversion(of: $0) }
    // The magic numbers of microseconds, of nanoseconds and of Kuznetzov's variant.
    case [0xA1, 0xB2, 0xC3, 0xD4], [0xA1, 0xB2, 0x3C, 0x4D], [0xA1, 0xB2, 0xCD, 0x34]:
      pcapType(isBigEndian: true)
    case [0xD4, 0xC3, 0xB2, 0xA1], [0x4D, 0x3C, 0xB2, 0xA1], [0x34, 0xCD, 0xB2, 0xA1]:
      pcapType(isBigEndian: false)
    case [0x50, 0x4B, 0x03, 0x04]: "it is zip"
    case let start where start.starts(with: [0x1F, 0x8B]): "it is gzip"
    case let start where start.count < 4 && !isAll: nil
    default: "it does not begin with `btsnoop`"
    }
  }

  /// The link type is in the last of the header's 24 bytes (draft-ietf-opsawg-pcap). Its high half has flags.
  private func pcapType(isBigEndian: Bool) -> String? {
    guard bytes.count >= 24 else { return isAll ? "it is pcap" : nil }
    return "it is pcap" + Self.conversion(of: [UInt16(truncatingIfNeeded: word(at: 20, isBigEndian))])
  }

  /// The link types of a pcapng file's interfaces, each once (draft-ietf-opsawg-pcapng). They are in the blocks in
  /// front of the packets.
  ///
  /// - Returns: nil if more bytes are needed.
  private var pcapngTypes: [UInt16]? {
    guard bytes.count >= 12 else { return isAll ? [] : nil }
    let isBigEndian = bytes[8] == 0x1A
    var types: [UInt16] = []
    var start = 0
    while start + 12 <= bytes.count {
      let block = word(at: start, isBigEndian)
      let length = Int(word(at: start + 4, isBigEndian))
      // Packets: obsolete, simple and enhanced.
      if [2, 3, 6].contains(block) || length < 12 { return types }
      if block == 1 {
        let type = UInt16(truncatingIfNeeded: word(at: start + 8, isBigEndian) >> (isBigEndian ? 16 : 0))
        if !types.contains(type) { types.append(type) }
      }
      start += length
    }
    return isAll ? types : nil
  }

  private func word(at start: Int, _ isBigEndian: Bool) -> UInt32 {
    let word = bytes[start..<start + 4]
    return isBigEndian ? UInt32(bigEndianBytes: word) : UInt32(littleEndianBytes: word)
  }

  // MARK: - Link types

  /// The names of link types (https://www.tcpdump.org/linktypes.html) that captures of Bluetooth have, and of what else
  /// Wireshark is used for most.
  private static let names: [UInt16: String] = [
    1: "Ethernet", 105: "Wi-Fi", 113: "Linux cooked", 127: "Wi-Fi with radio information",
    187: "Bluetooth HCI H4", 189: "USB", 201: "Bluetooth HCI H4 with directions", 220: "USB",
    249: "USB", 251: "Bluetooth LE link layer", 254: "Bluetooth Linux monitor", 255: "Bluetooth BR/EDR baseband",
    256: "Bluetooth LE link layer with radio information", 272: "nRF Sniffer for Bluetooth LE",
  ]

  /// What converts a link type, tried with Wireshark 4.0. Without `-T`, editcap refuses 187: it has no directions.
  private static let converters: [UInt16: String] = [
    187: "editcap -T bluetooth-h4-linux -F btsnoop", 201: "editcap -F btsnoop", 254: "editcap -F btsnoop",
  ]

  private static func conversion(of types: [UInt16]) -> String {
    guard let type = types.first else { return "" }
    let named = types.map { type in names[type].map { "\(type) (\($0))" } ?? "\(type)" }
    let known = converters.keys.sorted().map { "\($0)" }.joined(separator: ", ")
    if types.count > 1 {
      return " with the link types \(named.joined(separator: ", ")); only a capture of one of \(known) can be converted"
    }
    if let converter = converters[type] { return " of link type \(named[0]), which `\(converter)` converts" }
    return " of link type \(named[0]); only the types \(known) can be converted"
  }
}
