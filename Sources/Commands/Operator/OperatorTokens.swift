import ArgumentParser
import Domain
import Encoding
import Provisioning
import StepProtocol
import Terminal

struct OperatorTokens: ContextCommand {
  static let configuration = CommandConfiguration(
    commandName: "tokens", abstract: "List the tokens that were issued.")

  @OptionGroup var place: PlaceOptions

  @Option(help: "Only those of this rider.", completion: LiveCompletion.rider)
  var rider: String?

  @Flag(help: "Also those that have ended or were revoked.")
  var all = false

  @OptionGroup var output: OutputOptions

  func run(in context: Context) throws {
    let console = output.console(context)
    let now = context.seconds
    let ledger = try place.place.ledger()
    for entry in ledger.tokens where rider == nil || rider == entry.rider {
      let state = ledger.state(of: entry, at: now)
      guard all || state == .valid || state == .notYetValid else { continue }
      try console.isJSON
        ? console.result(entry.json(state))
        : console.result("\(entry.id)  \(entry.line(state, at: now))")
    }
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

  func json(_ state: Ledger.TokenState) -> JSON {
    [
      "token": .string(id), "rider": .string(rider), "vehicle": .string(vehicle.description),
      "steps": .array(steps.map { .string($0.description) }), "not_before": .integer(notBefore),
      "expires": .integer(expires), "device_key": .string(device.description), "state": .string(state.rawValue),
    ]
  }
}
