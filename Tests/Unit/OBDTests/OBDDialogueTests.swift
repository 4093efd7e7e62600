import Domain
import SystemIO
import TestSupport
import Testing

@testable import OBD

/// What an adapter and a vehicle say, at times that the test chooses.
private struct Talk {
  private let start = Instant.now
  private var dialogue: OBDDialogue
  private var clock = 0

  init() { dialogue = OBDDialogue(at: start) }

  var now: Instant { start + .milliseconds(clock) }

  /// When the last question was asked: milliseconds.
  private(set) var asked = 0

  /// What is sent until `time`, milliseconds.
  mutating func sent(until time: Int) throws -> [String] {
    var lines: [String] = []
    while true {
      let output = dialogue.takeOutput()
      if !output.isEmpty {
        lines.append(String(decoding: output, as: UTF8.self))
        asked = clock
      }
      let due = Int(start.duration(to: dialogue.deadline) / .milliseconds(1))
      guard due <= time else { break }
      clock = max(clock, due)
      try dialogue.passed(at: now)
    }
    clock = max(clock, time)
    return lines
  }

  mutating func hears(_ text: String) throws -> [OBDDialogue.Event] { try dialogue.received(text.utf8, at: now) }

  /// The question after an adapter's start.
  mutating func begins() throws {
    #expect(try sent(until: 400) == ["ATZ\r"])
    #expect(try hears("ATZ\r\r\rELM327 v2.2\r\r>").isEmpty)
    var lines: [String] = []
    for time in [1000, 1010, 1020, 1030] {
      lines += try sent(until: time)
      _ = try hears(lines == ["ATE0\r"] ? "ATE0\rOK\r\r>" : "OK\r\r>")
    }
    lines += try sent(until: 1040)
    #expect(lines == ["ATE0\r", "ATL0\r", "ATS0\r", "ATSP0\r", "010D\r"])
  }

  func speed(_ speed: Int) -> [OBDDialogue.Event] { [.speed(speed, asked: start + .milliseconds(asked))] }
}

/// Texts are those of the ELM327 data sheet, v2.2, and of ISO 15031-5.
@Suite("The dialogue with an OBD adapter") struct OBDDialogueTests {
  @Test("asks for the speed five times a second, each time after the answer before")
  func asks() throws {
    var talk = Talk()
    try talk.begins()
    for speed in [0, 1, 50, 255] {
      let digits = String(speed, radix: 16, uppercase: true)
      #expect(try talk.hears("410D\(digits.count == 1 ? "0" : "")\(digits)\r\r>") == talk.speed(speed))
      #expect(try talk.sent(until: talk.asked + 199).isEmpty)
      #expect(try talk.sent(until: talk.asked + 200) == ["010D\r"])
    }
  }

  @Test(
    "a speed is what all control units say, and of several the highest",
    arguments: [
      ("410D00", 0), ("41 0D 00 ", 0), ("\0410D05\r", 5), ("410d0a", 10), ("410D00\r410D07\r", 7),
      ("410D07\r\n410D00", 7), ("SEARCHING...\r410D00", 0), ("SEARCHING...410D03", 3),
      ("BUS INIT: ...OK\r410D00", 0), ("BUS INIT: OK\r41 0D 10", 16),
    ])
  func speeds(text: String, speed: Int) throws {
    var talk = Talk()
    try talk.begins()
    #expect(try talk.hears("\(text)\r\r>") == talk.speed(speed))
  }

  @Test(
    "anything else is no speed, and least of all the speed 0",
    arguments: [
      "NO DATA", "STOPPED", "UNABLE TO CONNECT", "?", "CAN ERROR", "BUFFER FULL", "BUS INIT: ...ERROR", "<RX ERROR",
      "SEARCHING...", "", "410C0000", "410D", "410D0000", "7F010D12", "410D00 <DATA ERROR", "410D00\rNO DATA",
      "410D00\rSTOPPED", "4 10D 0", "0D00", "410D0G", "41\r0D\r00", "ERR94", "LV RESET\r410D00",
    ])
  func noSpeed(text: String) throws {
    var talk = Talk()
    try talk.begins()
    let events = try talk.hears("\(text)\r\r>")
    guard case .noSpeed(let said)? = events.first else { return #expect(Bool(false), "\(events)") }
    #expect(said == (text.isEmpty ? "an empty answer" : text.split(separator: "\r").joined(separator: " ")))
    // It asks again.
    #expect(try talk.sent(until: talk.asked + 200) == ["010D\r"])
  }

  @Test("a late answer comes with the time of its own question, and nothing is asked before it")
  func late() throws {
    var talk = Talk()
    try talk.begins()
    let first = talk.speed(0)
    #expect(try talk.sent(until: talk.asked + 5000).isEmpty)
    #expect(try talk.hears("410D00\r\r>") == first)
    #expect(try talk.sent(until: talk.asked + 5000) == ["010D\r"])
    #expect(try talk.hears("410D32\r\r>") == talk.speed(50))
    #expect(talk.speed(0) != first)
  }

  @Test("what another program has asked is waited for, and answers nothing")
  func inherited() throws {
    var talk = Talk()
    #expect(try talk.sent(until: 200).isEmpty)
    #expect(try talk.hears("410D00\r\r>").isEmpty)
    #expect(try talk.sent(until: 499).isEmpty)
    #expect(try talk.sent(until: 500) == ["ATZ\r"])
    // The reset's answer comes after what was still on the way.
    #expect(try talk.hears("41 0D 00\r\r>").isEmpty)
    #expect(try talk.sent(until: 700).isEmpty)
    #expect(try talk.hears("\r\rELM327 v1.5\r\r>").isEmpty)
    #expect(try talk.sent(until: 999).isEmpty)
    #expect(try talk.sent(until: 1000) == ["ATE0\r"])
  }

  @Test("an adapter that was reset meanwhile is set up again")
  func reset() throws {
    var talk = Talk()
    try talk.begins()
    #expect(try talk.hears("410D00\r\r>") == talk.speed(0))
    #expect(try talk.hears("\rLV RESET\r\r>").isEmpty)
    #expect(try talk.sent(until: 1339).isEmpty)
    #expect(try talk.sent(until: 1340) == ["ATZ\r"])
  }

  @Test("an adapter that says nothing, or never ends, or does not know a command, is given up")
  func faults() throws {
    for count in 0...1 {
      var talk = Talk()
      if count > 0 { try talk.begins() }
      #expect(throws: OBDError.silent) { _ = try talk.sent(until: 30_000) }
    }
    var talk = Talk()
    try talk.begins()
    #expect(throws: OBDError.unusable("a line has no end")) {
      _ = try talk.hears(String(repeating: "410D00\r", count: 200))
    }
    talk = Talk()
    #expect(throws: OBDError.unusable("it does not stop talking")) {
      for time in stride(from: 0, through: 10_000, by: 100) {
        #expect(try talk.sent(until: time).isEmpty)
        _ = try talk.hears(".")
      }
    }
    talk = Talk()
    _ = try talk.sent(until: 400)
    _ = try talk.hears("ELM327 v2.2\r\r>")
    _ = try talk.sent(until: 1000)
    #expect(throws: OBDError.unusable("?")) { _ = try talk.hears("?\r\r>") }
  }

  @Test("at random: a line is sent only after a prompt", arguments: 1...200)
  func random(seed: UInt64) throws {
    var random = SplitMix(seed)
    var dialogue = OBDDialogue(at: Instant.now)
    var now = Instant.now
    let words = ["410D00", "41 0D 21", "NO DATA", "OK", "ELM327 v1.5", "\r", "\r\r", ">", "?", "\0", "STOPPED", "A"]
    var isPrompted = true
    for _ in 0..<300 {
      now = now + .milliseconds(Int(random.next() % 400))
      do {
        try dialogue.passed(at: now)
        let output = String(decoding: dialogue.takeOutput(), as: UTF8.self)
        if !output.isEmpty {
          #expect(output == "ATZ\r" || isPrompted)
          isPrompted = false
        }
        let text = words[Int(random.next() % UInt64(words.count))]
        _ = try dialogue.received(text.utf8, at: now)
        if text == ">" { isPrompted = true }
      } catch {
        dialogue = OBDDialogue(at: now)
      }
    }
  }
}

@Suite("Where an OBD adapter is") struct OBDAddressTests {
  @Test(
    "a path with or without a speed, or a host and its port",
    arguments: [
      ("/dev/ttyUSB0", OBDAddress.serial(path: "/dev/ttyUSB0", speed: 38_400)),
      ("/dev/rfcomm0:9600", .serial(path: "/dev/rfcomm0", speed: 9600)),
      ("tcp:192.168.0.10:35000", .network(HostPort(host: "192.168.0.10", port: 35_000))),
      ("tcp:[::1]:35000", .network(HostPort(host: "::1", port: 35_000))),
    ])
  func read(text: String, address: OBDAddress) {
    #expect(OBDAddress(text[...]) == address)
    #expect(address.text == text)
  }

  @Test(
    "nothing else",
    arguments: [
      "", "ttyUSB0", "/dev/", "/dev/ttyUSB0:", "/dev/ttyUSB0:1", "/dev/ttyUSB0:038400", "/dev/ttyUSB0:+9600", "tcp:",
      "tcp:host", "tcp:host:0", "tcp::1:2", "udp:host:1", ":9600",
    ])
  func refused(text: String) { #expect(OBDAddress(text[...]) == nil) }
}
