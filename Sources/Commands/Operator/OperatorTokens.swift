import ArgumentParser
import Domain
import Encoding
import Provisioning
import StepProtocol
import Terminal

struct OperatorTokens: ContextCommand {
  static let configuration = CommandConfiguration(
    commandName: "tokens", abstract: "List the tokens that were issued.",
    usage: "stepctl operator tokens [<options>] <dir> [<entry>]")

  @OptionGroup var place: PlaceOptions
  @OptionGroup var entry: EntryOptions

  @Option(help: "Only those of this rider.", completion: LiveCompletion.rider)
  var rider: String?

  @Flag(help: "Also those that have ended or were revoked.")
  var all = false

  @OptionGroup var output: OutputOptions

  func run(in context: Context) throws {
    let console = output.console(context)
    let now = context.seconds
    let ledger = try place.place.ledger()
    let isNamed = entry.entry != nil
    let shown = try entry.chosen(of: ledger.tokens, "token") { $0.id == $1 }.filter { token in
      let isCurrent = [.valid, .notYetValid].contains(ledger.state(of: token, at: now))
      return (rider == nil || rider == token.rider) && (all || isNamed || isCurrent)
    }
    for token in shown {
      let state = ledger.state(of: token, at: now)
      if console.isJSON {
        try console.result(token.json(state, isWhole: isNamed))
      } else {
        try console.result("\(token.id)  \(token.line(state, at: now))")
        if isNamed {
          try console.result(
            """
              from     \(dateAndTime(token.notBefore)) until \(dateAndTime(token.expires))
              vehicle  \(token.vehicle)
              device   \(token.device)
              key      \(token.key)
            """)
        }
      }
    }
    if shown.isEmpty { console.note("no tokens") }
  }
}

extension Ledger {
  enum TokenState: String {
    case valid
    case notYetValid = "not_yet_valid"
    case expired, revoked
  }

  func state(of entry: Entry, at now: Int64) -> TokenState {
    if isRevoked(entry) { return .revoked }
    if now >= entry.expires { return .expired }
    return now < entry.notBefore ? .notYetValid : .valid
  }
}

extension Ledger.Entry {
  /// `anna: left, right, until 2026-11-21 17:30 (7 h)`
  func line(_ state: Ledger.TokenState, at now: Int64) -> String {
    let time =
      switch state {
      case .valid: "until \(dateAndTime(expires)) (\(span(expires - now)))"
      case .notYetValid: "from \(dateAndTime(notBefore)) until \(dateAndTime(expires))"
      case .expired: "expired \(dateAndTime(expires))"
      case .revoked: "revoked"
      }
    return "\(printable(rider)): \(steps.map(\.description).joined(separator: ", ")), \(time)"
  }

  /// - Parameter isWhole: whether it also says by which key it is signed.
  func json(_ state: Ledger.TokenState, isWhole: Bool = false) -> JSON {
    let members: JSON = [
      "token": .string(id), "rider": .string(rider), "vehicle": .string(vehicle.description),
      "steps": .array(steps.map { .string($0.description) }), "not_before": .integer(notBefore),
      "expires": .integer(expires), "device_key": .string(device.description), "state": .string(state.rawValue),
    ]
    return isWhole ? .object((members.object ?? []) + [.init("key", .string(key.description))]) : members
  }
}
