import CommandParts

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
  private var place: String?
  private var values: [String: String] = [:]

  /// The typed command; nil if ArgumentParser must read it.
  static func command(_ words: [String]) -> (any ContextCommand)? {
    guard let name = words.first else { return nil }
    let rest = words.dropFirst()
    do throws(NotPlain) {
      switch name {
      case "open":
        var open = Open()
        (open.wait, open.sources, open.move) = (nil, [], try move(rest))
        return open
      case "close":
        var close = Close()
        close.move = try move(rest)
        return close
      case "stop":
        let words = try PlainWords(rest, ["--side", "--vehicle", "--timeout"], hasPlace: true)
        var stop = Stop()
        (stop.place, stop.side) = try words.step(Stop.Choice.init(rawValue:))
        (stop.vehicle, stop.timeout, stop.output) = (words.vehicle, try words.timeout, words.output)
        return stop
      case "status":
        let words = try PlainWords(rest, ["--vehicle", "--timeout"])
        var status = Status()
        (status.watch, status.vehicle) = (false, words.vehicle)
        (status.timeout, status.output) = (try words.timeout, words.output)
        return status
      default: return nil
      }
    } catch {
      return nil
    }
  }

  private init(_ words: ArraySlice<String>, _ options: [String], hasPlace: Bool = false) throws(NotPlain) {
    var rest = words
    while let word = rest.popFirst() {
      switch word {
      case "--json" where !json: json = true
      case "--quiet" where !quiet, "-q" where !quiet: quiet = true
      case _ where options.contains(word) && values[word] == nil:
        guard let value = rest.popFirst(), !value.isEmpty, !value.hasPrefix("-") else { throw NotPlain() }
        values[word] = value
      case _ where hasPlace && place == nil: place = word
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
  private func step<Choice>(_ read: (String) -> Choice?) throws(NotPlain) -> (place: Choice?, side: Choice?) {
    let side = try value("--side", read)
    guard let place else { return (nil, side) }
    guard let choice = read(place), side == nil else { throw NotPlain() }
    return (choice, nil)
  }

  // ArgumentParser traps when code reads an unset property, so each property of each group is set here.

  private static func move(_ typed: ArraySlice<String>) throws(NotPlain) -> MoveOptions {
    let options = ["--side", "--by", "--vehicle", "--radio", "--nfc", "--qr", "--timeout"]
    let words = try PlainWords(typed, options, hasPlace: true)
    var move = MoveOptions()
    (move.place, move.side) = try words.step(SideChoice.init(rawValue:))
    (move.watch, move.callRadio) = (false, nil)
    var presence = PresenceOptions()
    presence.by = try words.value("--by", MethodChoice.init(rawValue:)) ?? .auto
    (presence.radio, presence.reader, presence.codes) = (RadioOptions(), NFCOptions(), QROptions())
    presence.radio.radio = words.values["--radio"]
    presence.reader.nfc = words.values["--nfc"]
    presence.codes.qr = words.values["--qr"]
    presence.timeout = try words.timeout
    (move.presence, move.vehicle, move.output) = (presence, words.vehicle, words.output)
    return move
  }

  private var vehicle: VehicleOptions {
    var options = VehicleOptions()
    options.vehicle = values["--vehicle"]
    return options
  }

  private var timeout: TimeoutOptions {
    get throws(NotPlain) {
      var options = TimeoutOptions()
      options.given = try value("--timeout", TimeSpan.init(argument:))
      return options
    }
  }

  private var output: OutputOptions {
    var options = OutputOptions()
    (options.json, options.quiet, options.verbose, options.noColor) = (json, quiet, 0, false)
    return options
  }
}
