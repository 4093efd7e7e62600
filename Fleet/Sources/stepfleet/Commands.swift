import ArgumentParser
import Domain
import Encoding
import Foundation
import Geography

struct VehicleGroup: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "vehicle", abstract: "The fleet's vehicles.",
    subcommands: [Add.self, List.self, Show.self, Place.self, Suspend.self, Resume.self, Remove.self])

  struct Add: ParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Announces a vehicle, and prints the code that it joins with.",
      discussion: "A vehicle that `stepctl provision vehicle NAME --operator DIR/operator` has made is taken at once.")
    @OptionGroup var server: ServerOption
    @Argument(help: "What people call it.") var name: String

    func run() throws {
      let name = name.trimmingCharacters(in: .whitespaces)
      let known = try server.ask("GET", "/vehicles")["vehicles"]?.array ?? []
      let answer = try server.ask("POST", "/vehicles", ["name": .string(name)])
      guard let code = answer["code"]?.string else { return print("\(name) is in service") }
      let settings = try server.folder.settings()
      if known.contains(where: { $0["name"]?.string == name && $0["state"] == "expected" }) {
        print("the code that \(name) had before does not count any more")
      }
      print(
        """
        \(name) can join within 24 hours with the code \(code), once. On the vehicle:
          stepctl provision vehicle DIR --fleet \(settings.origin) --code \(code)
        """)
    }
  }

  struct List: ParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Lists them, and what each is doing.")
    @OptionGroup var server: ServerOption
    @Flag(help: "Print JSON.") var json = false

    func run() throws {
      let answer = try server.ask("GET", "/vehicles")
      if json { return print(answer.text) }
      let rows = (answer["vehicles"]?.array ?? []).map { vehicle -> JSON in
        var notes: [String] = []
        if let time = vehicle["code_ends"]?.string { notes.append("its code lasts until \(time)") }
        if let time = vehicle["untold_since"]?.string { notes.append("not told since \(time)") }
        return .object(
          (vehicle.object ?? []) + [.init("note", notes.isEmpty ? "-" : .string(notes.joined(separator: "; ")))])
      }
      printTable(rows, ["name", "state", "bookings", "steps", "id", "note"]) { name, text in
        switch name {
        case "state": shownState(text)
        // As riders see a booking's.
        case "id": String(text.prefix(8))
        default: text
        }
      }
    }
  }

  struct Show: ParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Shows one, in JSON.")
    @OptionGroup var server: ServerOption
    @Argument(help: "Its name or id.") var vehicle: String
    @Flag(help: "Print JSON, as without it.") var json = false
    func run() throws { print(try server.ask("POST", "/vehicle", ["name": .string(vehicle)]).text) }
  }

  struct Place: ParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Says where one is now: `stepctl find` leads there.",
      usage: """
        stepfleet vehicle place [--dir <dir>] <vehicle> <latitude>,<longitude>
        stepfleet vehicle place [--dir <dir>] <vehicle> --none
        """,
      discussion: "Whoever has an account sees it: a rider has to find a vehicle before it is booked.")
    @OptionGroup var server: ServerOption
    @Argument(help: "Its name or id.") var vehicle: String
    // A southern latitude begins with a hyphen.
    @Argument(
      parsing: .allUnrecognized,
      help: ArgumentHelp("In degrees, as 48.7758,9.1829 or -33.8568,151.2153.", valueName: "latitude,longitude"))
    var place: [String] = []
    @Flag(help: "Forget where it is.") var none = false

    /// With a space after the comma it is two arguments.
    private var typed: String? { place.isEmpty ? nil : place.joined(separator: " ") }

    func validate() throws {
      guard place.isEmpty == none else { throw ValidationError("give one of a place and --none") }
      if let typed, Coordinate(typed: typed) == nil {
        throw ValidationError("\(typed): a place is LATITUDE,LONGITUDE in degrees, as 48.7758,9.1829")
      }
    }

    func run() throws {
      let position = typed.flatMap { Coordinate(typed: $0) }
      let answer = try server.ask(
        "POST", "/vehicle/place",
        [
          "name": .string(vehicle),
          "place": position.map { ["latitude": .number($0.latitude), "longitude": .number($0.longitude)] } ?? .null,
        ])
      print("\(answer["name"]?.string ?? vehicle): \(typed ?? "no place")")
    }
  }

  struct Suspend: ParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Takes one out of service: nobody books it, and access to it is revoked. Bookings stay.")
    @OptionGroup var server: ServerOption
    @Argument(help: "Its name or id.") var vehicle: String
    func run() throws { try change(server, vehicle, "suspended") }
  }

  struct Resume: ParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Takes one back into service.")
    @OptionGroup var server: ServerOption
    @Argument(help: "Its name or id.") var vehicle: String
    func run() throws { try change(server, vehicle, "in_service") }
  }

  struct Remove: ParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Takes one out of the fleet: its bookings are cancelled, and access to it is revoked.")
    @OptionGroup var server: ServerOption
    @Argument(help: "Its name or id.") var vehicle: String
    @Flag(name: .shortAndLong, help: "Do not ask.") var yes = false

    func run() throws {
      let found = try server.ask("POST", "/vehicle", ["name": .string(vehicle)])
      if !yes {
        let count = found["bookings"]?.integer ?? 0
        print("bookings that will be cancelled: \(count). To go on, type the vehicle's name:")
        guard readLine() == found["name"]?.string else {
          throw ServerError.usage("that is not its name; nothing was changed")
        }
      }
      // Without a question, another vehicle's name that is nearly that one is not meant.
      guard !yes || vehicle == found["name"]?.string || vehicle == found["id"]?.string else {
        throw ServerError.usage("-y takes the whole name or id: \(found["name"]?.string ?? "") is not \(vehicle)")
      }
      try change(server, found["id"]?.string ?? vehicle, "removed")
    }
  }

  private static func change(_ server: ServerOption, _ vehicle: String, _ service: String) throws {
    let answer = try server.ask("POST", "/vehicle", ["name": .string(vehicle), "service": .string(service)])
    print("\(answer["name"]?.string ?? vehicle): \(shownState(answer["state"]?.string ?? service))")
  }
}

struct AccountGroup: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "account", abstract: "Riders' accounts.",
    subcommands: [List.self, Role.self, Suspend.self, Resume.self, Delete.self])

  struct List: ParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Lists them.")
    @OptionGroup var server: ServerOption
    @Flag(help: "Print JSON.") var json = false

    func run() throws {
      let answer = try server.ask("GET", "/accounts")
      if json { return print(answer.text) }
      printTable(answer["accounts"]?.array ?? [], ["email", "role", "state", "id"])
    }
  }

  struct Role: ParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Notes what somebody is: a role allows nothing.")
    @OptionGroup var server: ServerOption
    @Argument(help: "Its address or id.") var account: String
    @Argument(help: "rider, technician or operator.") var role: String

    func run() throws {
      _ = try server.ask("POST", "/accounts/\(escaped(account))/role", ["role": .string(role)])
      print("\(account): \(role)")
    }
  }

  struct Suspend: ParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Keeps one out: its logins end, its bookings are cancelled, and its access is revoked.")
    @OptionGroup var server: ServerOption
    @Argument(help: "Its address or id.") var account: String

    func run() throws {
      _ = try server.ask("POST", "/accounts/\(escaped(account))/suspend", [:])
      print("\(account): suspended; its bookings are cancelled, and its access is revoked")
    }
  }

  struct Resume: ParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Lets one in again.")
    @OptionGroup var server: ServerOption
    @Argument(help: "Its address or id.") var account: String

    func run() throws {
      _ = try server.ask("POST", "/accounts/\(escaped(account))/resume", [:])
      print("\(account): active")
    }
  }

  struct Delete: ParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Deletes one: its bookings are cancelled, its access is revoked, its address is forgotten.")
    @OptionGroup var server: ServerOption
    @Argument(help: "Its address or id.") var account: String
    @Flag(name: .shortAndLong, help: "Do not ask.") var yes = false

    func run() throws {
      if !yes {
        print("Everything about \(account) will be deleted. To go on, type the account again:")
        guard readLine() == account else { throw ServerError.usage("that is not the account; nothing was changed") }
      }
      _ = try server.ask("DELETE", "/accounts/\(escaped(account))")
      print("\(account): deleted")
    }
  }
}

struct BookingGroup: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "booking", abstract: "Bookings.", subcommands: [List.self, Cancel.self])

  struct List: ParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Lists those that are not over.")
    @OptionGroup var server: ServerOption
    @Flag(help: "Print JSON.") var json = false

    func run() throws {
      let answer = try server.ask("GET", "/bookings")
      if json { return print(answer.text) }
      printTable(answer["bookings"]?.array ?? [], ["id", "name", "from", "to", "state", "email"]) {
        switch $0 {
        // As riders see it.
        case "id": String($1.prefix(8))
        // Whole minutes, as most have.
        case "from", "to": $1.hasSuffix(":00Z") ? "\($1.dropLast(4))Z" : $1
        default: $1
        }
      }
    }
  }

  struct Cancel: ParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Cancels one, and revokes the access that was given for it.")
    @OptionGroup var server: ServerOption
    @Argument(help: "Its id, or how that begins.") var booking: String

    func run() throws {
      let answer = try server.ask("POST", "/revoke", ["booking": .string(booking)])
      func text(_ name: String) -> String { printable(answer[name]?.string ?? "?") }
      let what = "\(text("booking").prefix(8)), \(text("name")), \(text("from")) to \(text("to")), of \(text("email"))"
      guard ["booked", "active"].contains(text("was")) else { return print("\(what): was \(text("was")) already") }
      print("\(what): cancelled; \(count(answer, "tokens", "token")) revoked")
    }
  }
}

struct Revoke: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Takes access back: vehicles refuse it as soon as they have read the operator's notice.",
    usage: """
      stepfleet revoke [--dir <dir>] --booking <id>
      stepfleet revoke [--dir <dir>] --device <thumbprint>
      stepfleet revoke [--dir <dir>] --account <address or id>
      """)
  @OptionGroup var server: ServerOption
  @Option(help: ArgumentHelp("A booking, which is cancelled: its id, or how that begins.", valueName: "id"))
  var booking: String?
  // A thumbprint may begin with a hyphen.
  @Option(
    parsing: .unconditional, help: ArgumentHelp("A device, by its key's thumbprint, for good.", valueName: "thumbprint")
  )
  var device: String?
  @Option(help: ArgumentHelp("An account, whose bookings are cancelled.", valueName: "address or id"))
  var account: String?

  func validate() throws {
    guard [booking, device, account].compactMap(\.self).count == 1 else {
      throw ValidationError("give one of --booking, --device and --account")
    }
  }

  func run() throws {
    let (path, body): (String, JSON) =
      if let booking {
        ("/revoke", ["booking": .string(booking)])
      } else if let device {
        ("/revoke", ["device": .string(device)])
      } else {
        ("/accounts/\(escaped(account!))/revoke", [:])
      }
    let answer = try server.ask("POST", path, body)
    let tokens = "\(count(answer, "tokens", "token")) revoked"
    print(
      device == nil
        ? tokens
        : "\(tokens), \(count(answer, "logins", "login")) ended; the device gets no access any more with this key")
  }
}

/// A vehicle's state, as people read it.
func shownState(_ state: String) -> String {
  state == "expected" ? "waits to join" : state.replacing("_", with: " ")
}

/// How many an answer says: `1 token`, `2 tokens`.
private func count(_ answer: JSON, _ member: String, _ one: String) -> String {
  let count = answer[member]?.integer ?? 0
  return count == 1 ? "1 \(one)" : "\(count) \(one)s"
}

struct KeysGroup: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "keys", abstract: "The operator's keys.", subcommands: [Rotate.self, Retire.self])

  struct Rotate: ParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Takes the next step of a change of keys: first the new key is announced, then it signs.")
    @OptionGroup var server: ServerOption
    @Option(
      help: ArgumentHelp(
        "The next key, for the first step: a file with a JWK, or PEM that OpenSSL reads.", valueName: "file"),
      completion: .file())
    var key: String?

    func run() throws {
      var body: [JSON.Member] = []
      if let key {
        var status = stat()
        guard stat(key, &status) == 0, let content = FileManager.default.contents(atPath: key),
          let text = String(validating: content, as: UTF8.self)
        else { throw ServerError.file(key, "cannot be read as text") }
        guard status.st_mode & 0o077 == 0 else { throw ServerError.file(key, "can be read by others: chmod 600") }
        body.append(.init("key", .string(text)))
      }
      print(try server.ask("POST", "/keys/rotate", .object(body))["done"]?.string ?? "")
    }
  }

  struct Retire: ParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Ends a change of keys: the old one no longer counts. Refused while its tokens last.")
    @OptionGroup var server: ServerOption
    func run() throws { print(try server.ask("POST", "/keys/retire", [:])["done"]?.string ?? "") }
  }
}
