import CommandParts
import Domain
import StepProtocol

/// Reads the most frequent words of the commands for a rider who waits at a step, without ArgumentParser.
///
/// ArgumentParser queries the Swift runtime about each type of option group and option, and for each query the runtime
/// walks through all protocol conformances of the program: 110 walks of 5,800 records, 28 % of the instructions of a
/// whole `open`. So this type reads simple command lines word by word. It rejects any other command line as a whole;
/// ArgumentParser then reads it, explains it, or says what is wrong with it.
struct PlainWords {
  /// A rare, mistyped or repeated word, or `--option=value`.
  private struct NotPlain: Error {}

  private var json = false
  private var quiet = false
  /// A word that is not an option.
  private var argument: String?
  private var values: [String: String] = [:]

  /// What is asked; nil if ArgumentParser must read it.
  static func request(_ words: [String]) -> (any Request)? {
    guard let name = words.first else { return nil }
    let rest = words.dropFirst()
    do throws(NotPlain) {
      switch name {
      case "open": return try move(.open, rest)
      case "close": return try move(.close, rest)
      case "stop":
        let words = try PlainWords(rest, ["--side", "--via", "--vehicle", "--timeout"])
        return StopRequest(
          side: try words.step(Side.init(rawValue:)), vehicle: words.values["--vehicle"],
          timeout: try words.timeout, via: try words.via, output: words.output)
      case "status":
        let words = try PlainWords(rest, ["--via", "--vehicle", "--timeout"])
        if words.argument != nil, words.values["--vehicle"] != nil { return nil }
        return StatusRequest(
          vehicle: words.argument ?? words.values["--vehicle"], timeout: try words.timeout, via: try words.via,
          output: words.output)
      default: return nil
      }
    } catch {
      return nil
    }
  }

  private init(_ words: ArraySlice<String>, _ options: [String]) throws(NotPlain) {
    var rest = words
    while let word = rest.popFirst() {
      switch word {
      case "--json" where !json: json = true
      case "--quiet" where !quiet, "-q" where !quiet: quiet = true
      case _ where options.contains(word) && values[word] == nil:
        guard let value = rest.popFirst(), !value.isEmpty, !value.hasPrefix("-") else { throw NotPlain() }
        values[word] = value
      case _ where argument == nil && !word.isEmpty && !word.hasPrefix("-"): argument = word
      default: throw NotPlain()
      }
    }
  }

  private func value<Value>(_ option: String, _ read: (String) -> Value?) throws(NotPlain) -> Value? {
    guard let text = values[option] else { return nil }
    guard let value = read(text) else { throw NotPlain() }
    return value
  }

  /// Selects the step, by a plain word or by an option.
  private func step<Choice>(_ read: (String) -> Choice?) throws(NotPlain) -> Choice? {
    let side = try value("--side", read)
    guard let argument else { return side }
    guard let choice = read(argument), side == nil else { throw NotPlain() }
    return choice
  }

  private static func move(
    _ target: Command.Move.Target, _ typed: ArraySlice<String>
  ) throws(NotPlain) -> MoveRequest {
    let options = ["--side", "--by", "--via", "--vehicle", "--radio", "--nfc", "--qr", "--timeout"]
    let words = try PlainWords(typed, options)
    let presence = PresenceRequest(
      by: try words.value("--by", MethodChoice.init(rawValue:)) ?? .auto, radio: words.values["--radio"],
      nfc: words.values["--nfc"], qr: words.values["--qr"], timeout: try words.timeout)
    return MoveRequest(
      target, side: try words.step(SideChoice.init(rawValue:))?.side, presence: presence, via: try words.via,
      vehicle: words.values["--vehicle"], output: words.output)
  }

  private var via: ViaChoice? {
    get throws(NotPlain) { try value("--via", ViaChoice.init(argument:)) }
  }

  private var timeout: TimeSpan? {
    get throws(NotPlain) { try value("--timeout", TimeSpan.init(argument:)) }
  }

  private var output: OutputChoice { OutputChoice(isJSON: json, isQuiet: quiet) }
}
