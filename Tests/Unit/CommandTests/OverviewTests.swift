import CommandParts
import Domain
import Encoding
import FileFormats
import Glibc
import Rider
import StepProtocol
import SystemIO
import Terminal
import TestSupport
import Testing

@testable import UserSettings

@Suite("stepctl alone")
struct OverviewTests {
  private var shell: Shell
  private let now: Int64

  init() throws {
    shell = try Shell()
    now = shell.now.microseconds / 1_000_000
    // A radio that is none of this machine's.
    shell.environment["STEPCTL_RADIO"] = "h4:unix:/radio"
  }

  private var folders: ConfigurationFolders { ConfigurationFolders(environment: shell.environment) }

  private func state() throws -> JSON { try #require(try shell.types("--json").objects.first) }

  private func expect(
    _ state: String, _ next: String, _ location: SourceLocation = #_sourceLocation
  ) throws {
    let object = try self.state()
    #expect(object["state"] == .string(state), sourceLocation: location)
    #expect(object["next"] == [.string(next)], sourceLocation: location)
    let ended = shell.types()
    #expect(ended.ending == .status(.done), sourceLocation: location)
    #expect(ended.lines.contains { $0.hasPrefix("next     \(next)   ") }, "\(ended.output)", sourceLocation: location)
    #expect(ended.lines.count <= 4, "\(ended.output)", sourceLocation: location)
    #expect(shell.types("-v").lines.count == ended.lines.count + 3, sourceLocation: location)
  }

  private func logsIn(isLoggedIn: Bool = true) throws {
    let tokens =
      #"{"access":"a","expires":1,"refresh":"r","token_endpoint":"https://localhost:1/t","#
      + #""revocation_endpoint":"https://localhost:1/r"}"#
    try shell.folder.write(
      "home/.config/stepctl/fleet/login.json",
      #"{"server":"https://localhost:1","email":"anna@example.org","tokens":\#(isLoggedIn ? tokens : "null")}"#,
      mode: 0o600)
  }

  /// - Parameters: from now, seconds.
  private func books(_ from: Int64, _ to: Int64, _ state: String = "booked") throws {
    let booking = Booking(
      id: "0f3a12bc-0000", vehicle: Shell.vehicle, name: "Van", from: now + from, to: now + to, state: state, steps: [],
      etag: nil)
    try FleetFolder("\(shell.path("home"))/.config/stepctl/fleet").keep([booking], now: now)
  }

  /// A rider's folder, as the operator makes it, among the known vehicles.
  private func hasAccess(_ name: String = "van") throws -> String {
    let car = shell.path("car")
    #expect(shell.types("provision", "vehicle", car, "--name", "Van").ending == .status(.done))
    #expect(shell.types("provision", "token", car, "--rider", "anna").ending == .status(.done))
    #expect(shell.types("config", "import", "\(car)/riders/anna", "--yes", "--name", name).ending == .status(.done))
    return shell.path("home/.config/stepctl/vehicles/\(name)")
  }

  @Test("who knows nothing yet has two ways")
  func nothing() throws {
    let object = try state()
    #expect(object["state"] == "no_vehicle")
    #expect(object["next"] == ["stepctl login URL", "stepctl config import FILE"])
    let ended = shell.types()
    #expect(ended.lines.first == "vehicle  none: you know no vehicle yet")
    #expect(ended.lines.count == 3)
    #expect(object["account"] == .null && object["device_key"] == .null && object["refused"] == .null)
    #expect(object["radio"] == ["name": "h4:unix:/radio", "is_there": .null])
  }

  @Test("who is logged in and has booked nothing books")
  func notBooked() throws {
    try logsIn()
    try expect("not_booked", "stepctl book VEHICLE --for 2h")
    #expect(shell.types().lines.first == "account  anna@example.org at localhost:1: nothing is booked")
    #expect(try state()["account"]?["logged_in"] == true)
  }

  @Test("whose login has ended logs in")
  func loggedOut() throws {
    try logsIn(isLoggedIn: false)
    try expect("logged_out", "stepctl login")
  }

  @Test("a booking says when it begins, then opens, then can be extended, then is over")
  func bookings() throws {
    try logsIn()
    try books(7200, 10_800)
    try expect("booked_later", "stepctl open")
    #expect(shell.types().lines.last == "next     stepctl open   from \(dateAndTime(now + 7200)) on, in 2 h")
    try books(-60, 3600)
    try expect("ready", "stepctl open")
    #expect(shell.types().lines.first == "booking  Van until \(dateAndTime(now + 3600)) (0f3a12bc)")
    try books(-3600, 300)
    try expect("booking_ends", "stepctl bookings extend --for 1h")
    try books(-3600, -60)
    try expect("booking_ended", "stepctl book Van --for 2h")
    try books(-3600, 3600, "cancelled")
    try expect("not_booked", "stepctl book Van --for 2h")
  }

  @Test("access opens, and its loss is named")
  func access() throws {
    let folder = try hasAccess()
    try expect("ready", "stepctl open")
    #expect(shell.types().lines.first == "vehicle  Van (~/.config/stepctl/vehicles/van/vehicle.toml)")
    try shell.folder.write("home/.config/stepctl/vehicles/van/token.jwt", "x\n", mode: 0o600)
    try expect("token_lost", "stepctl config import FILE")
    unlink("\(folder)/token.jwt")
    try expect("token_lost", "stepctl config import FILE")
    unlink("\(folder)/device.jwk")
    try expect("key_lost", "stepctl enroll --output request")
    let last = shell.types().lines.last
    #expect(last == "operator tell them: this device has lost its key, and has a new one")
    let ended = shell.types("status")
    #expect(ended.ending == .status(.noInput))
    #expect(
      ended.errors.hasSuffix(
        "hint: this device's key is lost: enroll again (`stepctl enroll --output request`), and tell your operator\n"))
  }

  @Test("a refusal is remembered until the access is another one, with what to tell the operator")
  func refusal() throws {
    let file = try VehicleFile(reading: try hasAccess() + "/vehicle.toml")
    let uuid = file.vehicle.uuid
    func refuse(_ code: RefusalCode, token: String? = nil, ago: Int64 = 60, booking: String? = nil) throws {
      RememberedRefusal(
        time: now - ago, vehicle: uuid, refusal: Refusal(code), token: try token ?? file.riderToken().id,
        booking: booking
      ).keep(in: folders)
    }
    try refuse(.tokenRevoked, booking: "0f3a12bc-0000")
    try expect("refused", "stepctl enroll --output request")
    let time = dateAndTime(now - 60)
    #expect(
      shell.types().lines.last == "operator tell them: Van refused booking 0f3a12bc at \(time) (token_revoked)")
    #expect(try state()["tell"] == .string("Van refused booking 0f3a12bc at \(time) (token_revoked)"))
    try refuse(.proofNotAccepted)
    try expect("refused", "stepctl open --by nfc")
    #expect(shell.types().lines.last?.contains("refused the token of anna at ") == true)
    // Another try can mend it, for a while.
    try refuse(.busy)
    try expect("refused", "stepctl open")
    try refuse(.busy, ago: 700)
    try expect("ready", "stepctl open")
    try refuse(.tokenRevoked, token: "another")
    try expect("ready", "stepctl open")
    #expect(try state()["refused"] == .null)
  }

  @Test("a refusal by one vehicle hides no booking of another")
  func refusalElsewhere() throws {
    let file = try VehicleFile(reading: try hasAccess() + "/vehicle.toml")
    RememberedRefusal(
      time: now - 60, vehicle: file.vehicle.uuid, refusal: Refusal(.tokenRevoked), token: try file.riderToken().id,
      booking: nil
    ).keep(in: folders)
    try expect("refused", "stepctl enroll --output request")
    try logsIn()
    try books(-60, 3600)
    try expect("ready", "stepctl open")
  }

  @Test("the file of a refusal is its user's only, and goes when the vehicle obeys")
  func refusalFile() throws {
    let path = "\(shell.path("home"))/.local/state/stepctl/refused.json"
    let refusal = RememberedRefusal(
      time: now, vehicle: Shell.vehicle, refusal: Refusal(.other("of_2030"), retryCanHelp: true), token: "t",
      booking: nil)
    refusal.keep(in: folders)
    var status = stat()
    #expect(stat(path, &status) == 0 && status.st_mode & 0o777 == 0o600)
    #expect(RememberedRefusal(in: folders) == refusal)
    RememberedRefusal.forget(of: .random(), in: folders)
    #expect(RememberedRefusal(in: folders) == refusal)
    RememberedRefusal.forget(of: Shell.vehicle, in: folders)
    #expect(!Files.exists(path) && RememberedRefusal(in: folders) == nil)
    try shell.folder.write("home/.local/state/stepctl/refused.json", "{\"time\":", mode: 0o600)
    #expect(RememberedRefusal(in: folders) == nil)
  }

  @Test("without a radio it says how else a step is found")
  func radio() throws {
    var shell = shell
    _ = try hasAccess()
    shell.environment["STEPCTL_RADIO"] = "hci15"
    shell.environment["STEPCTL_NFC"] = "pn53x_usb"
    let object = try #require(try shell.types("--json").objects.first)
    #expect(object["radio"] == ["name": "hci15", "is_there": false])
    #expect(object["next"] == ["stepctl open --by nfc"])
    #expect(object["why"] == "by the tag on the step: there is no hci15 here")
  }
}
