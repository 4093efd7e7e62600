import Access
import ArgumentParser
import CommandParts
import Domain
import Encoding
import Operator
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
    let book = try TokenBook(place.place, at: now)
    let isNamed = entry.entry != nil
    let shown = try entry.chosen(of: book.tokens, "token", in: place) { $0.id == $1 }.filter { token in
      let isCurrent = [.valid, .notYetValid].contains(book.state(of: token))
      return (rider == nil || rider == token.rider) && (all || isNamed || isCurrent)
    }
    for token in shown {
      if console.isJSON {
        try console.result(book.json(token, isWhole: isNamed))
      } else {
        try console.result("\(token.id)  \(book.line(token))")
        if isNamed {
          try console.result(
            """
              from     \(dateAndTime(token.notBefore)) until \(dateAndTime(token.expires))
              vehicle  \(token.vehicle)
              device   \(token.device.grouped)
              key      \(token.key.grouped)
            """)
        }
      }
    }
    if shown.isEmpty { console.note("no tokens") }
  }
}

/// The issued tokens, and their present validity.
struct TokenBook {
  let tokens: [Ledger.Entry]
  private let ledger: Ledger
  /// The operator's keys whose tokens vehicles accept.
  private let keys: [Thumbprint]
  /// The vehicles' names, if there are several.
  private let vehicles: [UUID: String]
  private let now: Int64

  init(_ place: OperatorPlace, at now: Int64) throws {
    ledger = try place.ledger()
    tokens = ledger.tokens
    keys = try place.keys().counting.map(\.thumbprint)
    let known = try place.vehicles()
    let named = try known.count > 1 ? known.map { try $0.vehicle() } : []
    vehicles = Dictionary(named.map { ($0.uuid, $0.name) }, uniquingKeysWith: { first, _ in first })
    self.now = now
  }

  enum State: String {
    case valid
    case notYetValid = "not_yet_valid"
    case expired, revoked
    /// The token has not ended, but no vehicle accepts it, because its signing key was retired.
    case void
  }

  func state(of token: Ledger.Entry) -> State {
    if ledger.isRevoked(token) { return .revoked }
    let time = token.validity.state(at: now)
    if time != .over, !keys.contains(token.key) { return .void }
    switch time {
    case .notYet: return .notYetValid
    case .now: return .valid
    case .over: return .expired
    }
  }

  /// `anna: left, right, until 2026-11-21 17:30 (7 h)`; with several vehicles also the token's vehicle.
  func line(_ token: Ledger.Entry) -> String {
    let time =
      switch state(of: token) {
      case .valid, .notYetValid, .expired: token.validity.words(at: now)
      case .revoked: "revoked"
      case .void: "void: its key was retired"
      }
    // A vehicle that was removed no longer has a name.
    let vehicle = vehicles.isEmpty ? "" : "\(printable(vehicles[token.vehicle] ?? token.vehicle.description)): "
    return "\(printable(token.rider)): \(vehicle)\(token.steps.map(\.description).joined(separator: ", ")), \(time)"
  }

  /// - Parameter isWhole: whether to name the signing key too.
  func json(_ token: Ledger.Entry, isWhole: Bool = false) -> JSON {
    let members: JSON = [
      "token": .string(token.id), "rider": .string(token.rider), "vehicle": .string(token.vehicle.description),
      "steps": .array(token.steps.map { .string($0.description) }), "not_before": .integer(token.notBefore),
      "expires": .integer(token.expires), "device_key": .string(token.device.description),
      "state": .string(state(of: token).rawValue),
    ]
    return isWhole ? .object((members.object ?? []) + [.init("key", .string(token.key.description))]) : members
  }
}
