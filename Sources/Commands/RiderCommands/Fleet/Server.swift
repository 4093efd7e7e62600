package import ArgumentParser
package import CommandParts
import Cryptography
import Domain
import Encoding
import HTTP
package import Rider
package import SystemIO
import Terminal
import UserSettings

/// Selects the server, and the authority that vouches for it.
package struct ServerOptions: ParsableArguments {
  package init() {}

  @Option(
    help: ArgumentHelp(
      "The server's CA, a file in PEM form (default: the system's CAs, or the one that was trusted before).",
      valueName: "file"),
    completion: .file(extensions: ["pem"]))
  package var ca: String?

  /// A client of the server at that address, or of the known server.
  ///
  /// If this computer does not know the server's authority, the user has to compare the fingerprint and confirm it.
  /// From then on only that authority is accepted for this server.
  package func client(
    at address: FleetAddress?, _ context: Context, _ interruption: Interruption, _ input: InputOptions
  ) throws -> FleetClient {
    let folder = try context.fleetFolder()
    let known = try folder.login()
    guard let server = address ?? known?.server else {
      throw ValidationError("Give the server's address: https://HOST.")
    }
    var authorities = known?.server == server ? known?.authorities : nil
    let world = try context.fleetWorld(interruption, noInput: input.noInput)
    if let ca {
      let text = try Files.readRegular(ca, limit: 1 << 20)
      authorities = String(decoding: text, as: UTF8.self)
    } else if authorities == nil {
      authorities = try unknownAuthority(of: server, context, interruption, input)
    }
    return FleetClient(at: server, authorities: authorities, in: folder, world)
  }

  /// Nil if the system trusts the server's authority.
  private func unknownAuthority(
    of server: FleetAddress, _ context: Context, _ interruption: Interruption, _ input: InputOptions
  ) throws -> String? {
    let limit = Duration.seconds(30)
    let host: String
    do {
      _ = try context.transport(nil, interruption).send(HTTPRequest(.get, server.url("/healthz")), within: limit)
      return nil
    } catch {
      // Swift 6.2 may release the error twice where a pattern of `catch` passes others on.
      guard case .unknownAuthority(let name) = error else { throw error }
      host = name
    }
    let chain = try context.transport(nil, interruption).presentedCertificates(by: server.url("/"), within: limit)
    guard let authority = chain.last, let fingerprint = Self.fingerprint(ofPEM: authority) else {
      throw HTTPError.unknownAuthority(host: host)
    }
    let console = Console(context)
    console.note("this computer does not know the authority that issued the certificate of \(host):")
    for line in fingerprint { console.note("  \(line)") }
    console.note("Ask the operator of the server for the fingerprint: `stepfleet init` prints it there.")
    guard context.input.isTerminal, !input.noInput else { throw HTTPError.unknownAuthority(host: host) }
    guard try input.questions(context, interruption).confirm("Trust it?", suggestion: false) else {
      throw CommandFailure(.failure, "not trusted; nothing was changed")
    }
    return authority
  }

  /// SHA-256 of the certificate, as openssl and `stepfleet init` print it, in two lines to fit 80 columns.
  static func fingerprint(ofPEM pem: String) -> [String]? {
    let lines = pem.split(whereSeparator: \.isNewline).filter { !$0.hasPrefix("-----") }
    guard let certificate = Base64URL.decode(base64: lines.joined()), !certificate.isEmpty else { return nil }
    let bytes = SHA256.digest(of: certificate).map { hexadecimal([$0]).uppercased() }
    return [bytes[..<16].joined(separator: ":") + ":", bytes[16...].joined(separator: ":")]
  }
}

extension Context {
  func fleetFolder() throws(StoreError) -> FleetFolder {
    guard let user = folders.user else { throw .noHome }
    return FleetFolder("\(user)/fleet")
  }

  /// - Parameter noInput: whether asking for the passphrase of this device's key is forbidden.
  func fleetWorld(_ interruption: Interruption, noInput: Bool = false) throws -> FleetClient.World {
    let device = try EnrolledDevice(folders)
    return FleetClient.World(
      device: {
        _ = try device.prepare()
        return try device.signingKey(unlock: unlock(interruption, noInput: noInput))
      },
      clock: { seconds }, steady: clocks.steady,
      transport: { authorities throws(HTTPError) in try transport(authorities, interruption) },
      pause: { duration in
        if try waitReadable([interruption.number], until: .now + duration)[0] { throw Interrupted() }
      },
      interruption: interruption)
  }

  /// A client of the server at which the user is logged in.
  func fleet(
    _ interruption: Interruption, deadline: Instant? = nil, noInput: Bool = false
  ) throws -> FleetClient {
    try FleetClient(in: fleetFolder(), fleetWorld(interruption, noInput: noInput), deadline: deadline)
  }
}

extension InputOptions {
  /// Asks whether to continue. Throws if nobody can be asked.
  func confirm(
    _ question: String, suggestion: Bool, _ context: Context, _ interruption: Interruption
  ) throws -> Bool {
    guard noInput || context.input.isTerminal else {
      throw CommandFailure(.noInput, "cannot ask: standard input is not a terminal", hint: "use --yes")
    }
    return try questions(context, interruption).confirm(question, suggestion: suggestion)
  }

  /// Whether somebody can be asked, again if necessary.
  func canAsk(_ context: Context) -> Bool { !noInput && context.input.isTerminal }

  /// An address and its password. Asks for the password.
  ///
  /// - Parameter isNew: true asks for a new password twice on a terminal.
  func credentials(
    of email: String, isNew: Bool = false, _ context: Context, _ interruption: Interruption
  ) throws -> FleetClient.Credentials {
    let question = isNew ? "a new password" : "password of \(printable(email))"
    return .init(email: email, password: try secret("password", question, isNew: isNew, context, interruption))
  }

  /// Asks for a secret, on a terminal until it is good: the next line that is typed must not go to the shell.
  ///
  /// - Parameters:
  ///   - kind: the name of the value.
  ///   - isNew: whether its length is checked.
  ///   - isRepeated: whether a new one is typed twice on a terminal.
  func secret(
    _ kind: String, _ question: String, isNew: Bool, isRepeated: Bool = true, _ context: Context,
    _ interruption: Interruption
  ) throws -> String {
    let questions = questions(context, interruption)
    while true {
      let secret = try questions.askSecret("\(question): ")
      let fault: String
      if secret.isEmpty {
        fault = "an empty \(kind)"
      } else if isNew, let wrong = Self.fault(kind, of: secret.utf8.count) {
        fault = wrong
      } else if isNew, isRepeated, context.input.isTerminal, try questions.askSecret("again: ") != secret {
        fault = "these are two different \(kind)s"
      } else {
        return secret
      }
      guard canAsk(context) else { throw CommandFailure(.usage, fault) }
      Console(context).note(fault)
    }
  }

  /// What is wrong with a new secret of so many bytes; nil if nothing is.
  ///
  /// - Parameter kind: the name of the value.
  static func fault(_ kind: String, of length: Int) -> String? {
    (8...256).contains(length) ? nil : "a \(kind) has 8 to 256 bytes"
  }
}

/// Says how the user accepts the terms of use.
struct TermsOptions: ParsableArguments {
  @Flag(name: .shortAndLong, help: "Accept the terms without being asked.")
  var yes = false

  /// - Parameter outcome: the state if the user does not accept them.
  func accept(
    _ terms: FleetClient.Terms, _ input: InputOptions, or outcome: String, _ context: Context,
    _ interruption: Interruption
  ) throws {
    if yes { return }
    terms.show(Console(context))
    guard try input.confirm("Do you accept these terms?", suggestion: false, context, interruption) else {
      throw CommandFailure(.failure, "not accepted; \(outcome)")
    }
  }
}

extension FleetClient.Terms {
  /// The text that people read before they accept.
  func show(_ console: Console) {
    for line in text.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline) {
      console.note(printable(String(line)))
    }
    console.note("(version \(printable(version)))")
  }
}
