import Bluetooth
import Domain
import Encoding
import Testing

@Suite("btsnoop decoding")
struct BTSnoopDecoderTests {
  struct Record: Equatable {
    let time: Int64
    let event: [UInt8]
  }

  /// Decodes bytes that arrive in pieces of a size, and what is wrong with them after that.
  private func decode(_ bytes: [UInt8], piece: Int = .max) -> (records: [Record], defect: BTSnoopDecoder.Defect?) {
    var decoder = BTSnoopDecoder()
    var records: [Record] = []
    var rest = bytes[...]
    do throws(BTSnoopDecoder.Defect) {
      while true {
        let record = try decoder.next { time, event in
          Record(time: time.microseconds, event: event.withUnsafeBufferPointer { Array($0) })
        }
        if let record {
          records.append(record)
        } else if rest.isEmpty {
          try decoder.finish()
          return (records, nil)
        } else {
          rest.prefix(piece).withUnsafeBytes { decoder.append($0) }
          rest = rest.dropFirst(piece)
        }
      }
    } catch {
      return (records, error)
    }
  }

  private static let sample: Capture = {
    var capture = Capture()
    capture.add(Packet.command, at: 1, flags: 2)
    capture.add(Packet.answer, at: 2)
    capture.add(Packet.report(), at: 3)
    capture.add([0x02, 0x01, 0x00, 0x01, 0x00, 0xAA], at: 4, flags: 1)
    capture.add(Packet.extendedReport(), at: 1_767_225_600_000_000)
    return capture
  }()

  private static let decoded = [
    Record(time: 1, event: []),
    Record(time: 2, event: Array(Packet.answer.dropFirst())),
    Record(time: 3, event: Array(Packet.report().dropFirst())),
    Record(time: 4, event: []),
    Record(time: 1_767_225_600_000_000, event: Array(Packet.extendedReport().dropFirst())),
  ]

  @Test("gives the events, whatever pieces the file comes in", arguments: [1, 2, 7, 16, 24, 41, 1000])
  func pieces(size: Int) {
    let (records, defect) = decode(Self.sample.bytes, piece: size)
    #expect(records == Self.decoded)
    #expect(defect == nil)
  }

  @Test("knows the Linux monitor's packets by their flags")
  func monitor() {
    var capture = Capture(dataLink: 2001)
    let event = Array(Packet.report().dropFirst())
    capture.add([0x00, 0x01], at: 1, flags: 0)  // New index
    capture.add(Array(Packet.command.dropFirst()), at: 2, flags: 2)
    capture.add(event, at: 3, flags: 3)
    capture.add(event, at: 4, flags: 1 << 16 | 3)  // The second adapter
    capture.add(event, at: 5, flags: 5)  // ACL data that looks like an event
    let (records, defect) = decode(capture.bytes)
    #expect(records.map(\.event) == [[], [], event, event, []])
    #expect(defect == nil)
  }

  @Test("reads bare HCI, whose flags tell events from all else")
  func bare() {
    var capture = Capture(dataLink: 1001)
    let event = Array(Packet.report().dropFirst())
    for flags: UInt32 in 0...3 { capture.add(event, at: Int64(flags), flags: flags) }
    let (records, defect) = decode(capture.bytes)
    #expect(records.map(\.event) == [[], [], [], event])
    #expect(defect == nil)
  }

  @Test("gives what there is of a packet that was cut when it was recorded")
  func cutPackets() {
    var capture = Capture()
    capture.add(Array(Packet.report().prefix(20)), at: 1, original: UInt32(Packet.report().count))
    capture.add([], at: 2, original: 9)
    capture.add(Packet.report(), at: 3)
    let (records, defect) = decode(capture.bytes)
    #expect(records.map(\.event.count) == [19, 0, Packet.report().count - 1])
    #expect(defect == nil)
  }

  @Test("gives the records before the tear, and says where the file is torn")
  func torn() {
    var ends: [Int] = []
    var capture = Capture()
    ends.append(capture.bytes.count)
    for time in 1...3 as ClosedRange<Int64> {
      capture.add(Packet.report(), at: time)
      ends.append(capture.bytes.count)
    }
    for count in 1..<capture.bytes.count {
      let (records, defect) = decode(Array(capture.bytes.prefix(count)), piece: 10)
      guard let last = ends.lastIndex(where: { $0 <= count }) else {
        #expect(defect == .damaged(offset: UInt64(count), expected: "the rest of a 16-byte file header"))
        continue
      }
      #expect(records.count == last)
      guard count > ends[last] else {
        #expect(defect == nil)
        continue
      }
      // Until the record's header is complete, only the rest of that is known to be missing.
      let missing = (count - ends[last] < 24 ? ends[last] + 24 : ends[last + 1]) - count
      let expected = "\(missing) more bytes of the record at byte \(ends[last])"
      #expect(defect == .damaged(offset: UInt64(count), expected: expected))
    }
  }

  @Test("stops at a record that cannot be, and says at which byte")
  func damaged() {
    var capture = Capture()
    capture.add(Packet.report(), at: 1)
    let second = capture.bytes.count
    capture.add(Packet.report(), at: 2)

    func with(_ word: [UInt8], at offset: Int) -> [UInt8] {
      var bytes = capture.bytes
      bytes.replaceSubrange(second + offset..<second + offset + word.count, with: word)
      return bytes
    }
    let size = Packet.report().count
    let cases: [([UInt8], BTSnoopDecoder.Defect)] = [
      (
        with([0x00, 0x00, 0x01, 0x00], at: 4),
        .damaged(offset: UInt64(second + 4), expected: "an included length of at most the original \(size)")
      ),
      (
        with([0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF], at: 0),
        .damaged(offset: UInt64(second + 4), expected: "a packet of at most 65540 bytes")
      ),
      (
        with([0xFF, 0xFF, 0xFF, 0xFF], at: 16),
        .damaged(offset: UInt64(second + 16), expected: "a time in the years 0 to 9999")
      ),
      (
        with([0x04, 0x61, 0x21, 0xBF, 0xDB, 0xA2, 0xE0, 0x00], at: 16),
        .damaged(offset: UInt64(second + 16), expected: "a time in the years 0 to 9999")
      ),
    ]
    for (bytes, expected) in cases {
      let (records, defect) = decode(bytes)
      #expect(records.count == 1)
      #expect(defect == expected)
    }
  }

  @Test(
    "refuses other files, and says what they are",
    arguments: [
      ([], "it is empty"),
      ([0x0A, 0x0D, 0x0D, 0x0A, 0x1C, 0, 0, 0], "it is pcapng"),
      ([0xD4, 0xC3, 0xB2, 0xA1, 2, 0, 4, 0], "it is pcap"),
      ([0xA1, 0xB2, 0x3C, 0x4D, 0, 2, 0, 4], "it is pcap"),
      ([0x1F, 0x8B, 8, 0], "it is gzip"),
      ([0x50, 0x4B, 3, 4, 0], "it is zip"),
      ([0x41], "it does not begin with `btsnoop`"),
      (Array("snoop\0\0\0".utf8), "it does not begin with `btsnoop`"),
      (Array("> 04 3E 27 02 01".utf8), "it does not begin with `btsnoop`"),
      (Capture(version: 2).bytes, "its version is 2, and only version 1 is known"),
      (
        Capture(dataLink: 1003).bytes,
        "its data link type is 1003; only 1001 (HCI), 1002 (H4) and 2001 (Linux monitor) are known"
      ),
    ] as [([UInt8], String)])
  func otherFiles(bytes: [UInt8], reason: String) {
    let (records, defect) = decode(bytes)
    #expect(records.isEmpty)
    #expect(defect == .notACapture(reason: reason))
  }

  @Test(
    "says a foreign capture's link type, and only what converts it",
    arguments: [
      (187, " (Bluetooth HCI H4), which `editcap -T bluetooth-h4-linux -F btsnoop` converts"),
      (201, " (Bluetooth HCI H4 with directions), which `editcap -F btsnoop` converts"),
      (254, " (Bluetooth Linux monitor), which `editcap -F btsnoop` converts"),
      (251, " (Bluetooth LE link layer); only the types 187, 201, 254 can be converted"),
      (272, " (nRF Sniffer for Bluetooth LE); only the types 187, 201, 254 can be converted"),
      (1, " (Ethernet); only the types 187, 201, 254 can be converted"),
      (147, "; only the types 187, 201, 254 can be converted"),
    ] as [(UInt16, String)])
  func linkTypes(type: UInt16, rest: String) {
    for isBigEndian in [false, true] {
      let files: [(String, [UInt8])] = [
        ("pcap", ForeignFile.pcap(type, isBigEndian: isBigEndian)),
        ("pcapng", ForeignFile.pcapng([type], packets: [[1, 2, 3]], isBigEndian: isBigEndian)),
        ("pcapng", ForeignFile.pcapng([type, type], isBigEndian: isBigEndian)),
      ]
      for (name, file) in files {
        for piece in [1, 7, .max] {
          let (records, defect) = decode(file, piece: piece)
          #expect(records.isEmpty)
          #expect(defect == .notACapture(reason: "it is \(name) of link type \(type)\(rest)"))
        }
      }
    }
  }

  @Test("says all link types of a capture of several interfaces, and does not wait for its packets")
  func interfaces() {
    let several = ForeignFile.pcapng([201, 1])
    let reason = """
      it is pcapng with the link types 201 (Bluetooth HCI H4 with directions), 1 (Ethernet); only a capture of one of \
      187, 201, 254 can be converted
      """
    #expect(decode(several).defect == .notACapture(reason: reason))
    #expect(decode(ForeignFile.pcapng([])).defect == .notACapture(reason: "it is pcapng"))
    // The interface would come behind more than is looked at.
    let section = ForeignFile.pcapng([])
    let custom =
      UInt32(0xBAD).littleEndianBytes + UInt32(80_000).littleEndianBytes + [UInt8](repeating: 0, count: 79_992)
    #expect(decode(section + custom + custom, piece: 5000).defect == .notACapture(reason: "it is pcapng"))
    let named = "it is pcapng of link type 201 (Bluetooth HCI H4 with directions), which `editcap -F btsnoop` converts"
    var decoder = BTSnoopDecoder()
    ForeignFile.pcapng([201], packets: [[]]).withUnsafeBytes { decoder.append($0) }
    do throws(BTSnoopDecoder.Defect) {
      _ = try decoder.next { time, _ in time }
      Issue.record("it waits for more")
    } catch {
      #expect(error == .notACapture(reason: named))
    }
  }

  @Test("survives every byte of a foreign capture being another")
  func foreignMutations() {
    for file in [ForeignFile.pcap(201), ForeignFile.pcapng([201, 1], packets: [[1, 2, 3]])] {
      for index in file.indices {
        for change: UInt8 in [0x01, 0x80, 0xFF] {
          var bytes = file
          bytes[index] ^= change
          #expect(decode(bytes).defect != nil)
        }
      }
    }
  }

  @Test("survives every byte being another")
  func mutations() {
    for index in Self.sample.bytes.indices {
      for change: UInt8 in [0x01, 0x80, 0xFF] {
        var bytes = Self.sample.bytes
        bytes[index] ^= change
        #expect(decode(bytes, piece: 50).records.count <= Self.decoded.count)
      }
    }
  }
}
