import Encoding
package import SystemIO

/// The dialogue with an adapter that asks a vehicle for its speed, again and again: bytes and time in, bytes and speeds
/// out (ELM327 data sheet; SAE J1979, mode 01, PID 0D).
///
/// The adapter answers each line with text and, when it is ready for the next line, with the prompt `>`. Whatever it
/// receives before the prompt interrupts its work. So a line is sent only after the prompt of the one before, however
/// late that is. The first line is sent only when the adapter has been silent for a while, because another program may
/// have asked something before. So an answer never belongs to another question.
package struct OBDDialogue {
  package enum Event: Equatable, Sendable {
    /// The vehicle's speed, in km/h, at some moment since the question; of several control units' speeds the highest.
    case speed(Int, asked: Instant)
    /// The adapter has answered, but not with a speed: what it said.
    case noSpeed(String)
  }

  private enum State: Equatable {
    /// Waits until the adapter says nothing more.
    case silence(until: Instant, Next)
    case reset(until: Instant)
    case setUp(Int, until: Instant)
    case question(asked: Instant)
    case pause(until: Instant)

    enum Next { case reset, setUp }
  }

  /// From one question to the next.
  private static let interval = Duration.milliseconds(200)
  private static let silence = Duration.milliseconds(300)
  /// A reset takes a second (data sheet, ATZ).
  private static let resetLimit = Duration.seconds(3)
  private static let setUpLimit = Duration.seconds(1)
  /// Looking for the vehicle's protocol takes ten seconds with some (data sheet, "Bus Initiation").
  private static let questionLimit = Duration.seconds(20)
  /// The longest answer, bytes: the speed takes 8.
  private static let longest = 1024
  /// No echo, no line feeds, no spaces; the protocol is found by the adapter.
  private static let setUp = ["ATE0", "ATL0", "ATS0", "ATSP0"]

  private var state: State
  /// The answer so far.
  private var answer: [UInt8] = []
  private var output: [UInt8] = []
  /// When the adapter has to be silent, at the latest.
  private var silenceEnd: Instant

  package init(at now: Instant) {
    state = .silence(until: now + Self.silence, .reset)
    silenceEnd = now + Self.resetLimit
  }

  /// When to call `passed(at:)` next.
  package var deadline: Instant {
    switch state {
    case .silence(let end, _), .reset(let end), .setUp(_, let end), .pause(let end): end
    case .question(let asked): asked + Self.questionLimit
    }
  }

  /// What to send to the adapter now.
  package mutating func takeOutput() -> [UInt8] {
    defer { output = [] }
    return output
  }

  /// Takes bytes from the adapter.
  ///
  /// - Throws: `OBDError` if there is no use in going on with this connection.
  package mutating func received(_ bytes: some Sequence<UInt8>, at now: Instant) throws(OBDError) -> [Event] {
    var events: [Event] = []
    for byte in bytes {
      switch byte {
      // "Null characters (00) may occasionally be received and should be ignored" (data sheet).
      case 0: break
      case UInt8(ascii: ">"):
        let text = answer
        answer = []
        if let event = try prompted(text, at: now) { events.append(event) }
      default:
        answer.append(byte)
        guard answer.count <= Self.longest else { throw .unusable("a line has no end") }
        try spoke(at: now)
      }
    }
    return events
  }

  /// Must be called at the deadline, and may be called before.
  ///
  /// - Throws: `OBDError.silent`.
  package mutating func passed(at now: Instant) throws(OBDError) {
    guard deadline <= now else { return }
    switch state {
    case .silence(_, .reset):
      answer = []
      send("ATZ", .reset(until: now + Self.resetLimit))
    case .silence(_, .setUp):
      answer = []
      send(Self.setUp[0], .setUp(0, until: now + Self.setUpLimit))
    case .pause: ask(at: now)
    case .reset, .setUp, .question: throw .silent
    }
  }

  // MARK: -

  private mutating func send(_ line: String, _ next: State) {
    output += Array("\(line)\r".utf8)
    state = next
  }

  private mutating func ask(at now: Instant) { send("010D", .question(asked: now)) }

  /// The adapter has said something.
  private mutating func spoke(at now: Instant) throws(OBDError) {
    switch state {
    case .silence(_, let next):
      guard now < silenceEnd else { throw .unusable("it does not stop talking") }
      state = .silence(until: now + Self.silence, next)
    // Nothing was asked. It may have been reset, as by a starter that took its voltage, and have lost its settings.
    case .pause: self = OBDDialogue(at: now)
    case .reset, .setUp, .question: break
    }
  }

  /// The adapter has ended an answer.
  private mutating func prompted(_ text: [UInt8], at now: Instant) throws(OBDError) -> Event? {
    switch state {
    case .silence, .pause: try spoke(at: now)
    case .reset:
      state = .silence(until: now + Self.silence, .setUp)
      silenceEnd = now + Self.resetLimit
    case .setUp(let index, _):
      // Before its first line has an effect, the adapter repeats that line.
      guard Self.lines(text).last == "OK" else { throw .unusable(Self.shown(text)) }
      guard index + 1 < Self.setUp.count else {
        ask(at: now)
        return nil
      }
      send(Self.setUp[index + 1], .setUp(index + 1, until: now + Self.setUpLimit))
    case .question(let asked):
      state = .pause(until: max(now, asked + Self.interval))
      return Self.speed(Self.lines(text)).map { .speed($0, asked: asked) } ?? .noSpeed(Self.shown(text))
    }
    return nil
  }

  private static func lines(_ text: [UInt8]) -> [String] {
    text.split { $0 == 0x0D || $0 == 0x0A }.map { String(decoding: $0.filter { $0 != 0x20 }, as: UTF8.self) }
      .filter { !$0.isEmpty }
  }

  /// The speed that the lines of an answer give; nil unless every control unit's line is a speed.
  private static func speed(_ lines: [String]) -> Int? {
    // What the adapter says while it looks for the vehicle's protocol. The answer may follow on the same line.
    let answers = lines.map { line -> Substring in
      if line.hasPrefix("SEARCHING...") { return line.dropFirst(12) }
      if line.hasPrefix("BUSINIT:") { return line.hasSuffix("OK") ? "" : line[...] }
      return line[...]
    }.filter { !$0.isEmpty }
    var highest: Int?
    for line in answers {
      guard let bytes = hexadecimal(line), bytes.count == 3, bytes.starts(with: [0x41, 0x0D]) else { return nil }
      highest = max(highest ?? 0, Int(bytes[2]))
    }
    return highest
  }

  /// For people.
  private static func shown(_ text: [UInt8]) -> String {
    let lines = text.split { $0 == 0x0D || $0 == 0x0A }.map { String(decoding: $0, as: UTF8.self) }
    return lines.isEmpty ? "an empty answer" : String(printable(lines.joined(separator: " ")).prefix(40))
  }
}
