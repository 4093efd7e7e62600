import Certificates
import Domain
import Encoding
import Glibc
import SystemIO
import Terminal
import TestSupport
import Testing

@Suite("stepctl config show and path")
struct ConfigTests {
  private let shell: Shell

  init() throws { shell = try Shell() }

  @Test("shows each setting and where it comes from")
  func show() throws {
    var shell = shell
    try shell.folder.write("home/.config/stepctl/config.toml", "radio = \"bluez:hci1\"\n\ntimeout = 4.5\n")
    try shell.folder.write("etc/config.toml", "nfc = \"pn53x_usb\"\ntimeout = 60\n")
    shell.environment["STEPCTL_TIMEOUT"] = "20"
    let ended = shell.types("config", "show", "--nfc", "pn532_uart:/dev/ttyUSB0")
    #expect(ended.ending == .status(.done))
    #expect(ended.errors == "")
    #expect(
      ended.output == """
        vehicle  -                                (default)
        radio    bluez:hci1                       (~/.config/stepctl/config.toml:1)
        nfc      pn532_uart:/dev/ttyUSB0          (flag --nfc)
        timeout  20.0 s                           (STEPCTL_TIMEOUT)

        """)
    let object = try #require(try shell.types("config", "show", "--json").objects.first)
    #expect(object["radio"] == ["value": "bluez:hci1", "origin": "~/.config/stepctl/config.toml:1"])
    #expect(object["nfc"]?["origin"] == .string("\(shell.path("etc"))/config.toml:1"))
    #expect(object["timeout_s"]?["value"] == .number(20))
    #expect(object["vehicle_file"] == .null)
  }

  @Test("shows the vehicle file that is meant, and what is wrong with it")
  func vehicle() throws {
    let file = try shell.vehicleFile()
    let ended = shell.types("config", "show", "--vehicle", file)
    #expect(ended.ending == .status(.done))
    #expect(
      Array(ended.lines.dropFirst(4)) == [
        "", "Van (\(file))", "  uuid       \(Shell.vehicle)", "  step       left, at the left side, major 1",
        "  step       right, at the right side, major 2",
      ])
    try shell.folder.write("van.toml", "name = \"Van\"\nuuid = 5\n")
    let wrong = shell.types("config", "show", "--vehicle", file)
    #expect(wrong.ending == .status(.configuration))
    #expect(wrong.errors.hasPrefix("stepctl: error: \(file):2: uuid: expected "))
    let none = shell.types("config", "show", "--vehicle", "van")
    #expect(none.ending == .status(.noInput))
    #expect(none.errors.hasPrefix("stepctl: error: --vehicle: no vehicle \"van\": there is no "))
  }

  @Test("says which setting is wrong")
  func wrongSettings() throws {
    var shell = shell
    let flag = shell.types("config", "show", "--timeout", "0")
    #expect(flag.ending == .status(.usage))
    #expect(flag.errors == "stepctl: error: --timeout: expected 0.1 s to 1 h, as 10, 10s or 2m, found \"0\"\n")
    shell.environment["STEPCTL_TIMEOUT"] = "soon"
    let variable = shell.types("config", "show")
    #expect(variable.ending == .status(.configuration))
    #expect(
      variable.errors == "stepctl: error: STEPCTL_TIMEOUT: expected 0.1 s to 1 h, as 10, 10s or 2m, found \"soon\"\n")
  }

  @Test("prints the files that are read, the most important first")
  func path() throws {
    try shell.folder.write("home/.config/stepctl/config.toml", "")
    let vehicle = try shell.vehicleFile("home/.config/stepctl/vehicles/van.toml")
    let ended = shell.types("config", "path")
    #expect(ended.ending == .status(.done))
    let user = shell.path("home/.config/stepctl/config.toml")
    let system = shell.path("etc/config.toml")
    #expect(ended.lines == [user, "\(system) (missing)", vehicle])
    #expect(
      try shell.types("config", "path", "--json").objects == [
        ["path": .string(user), "exists": true], ["path": .string(system), "exists": false],
        ["path": .string(vehicle), "exists": true],
      ])
  }
}

@Suite("stepctl config import")
struct ConfigImportTests {
  private let shell: Shell
  private let rider: String

  init() throws {
    shell = try Shell()
    let folder = shell.path("car")
    try #require(shell.types("provision", "vehicle", folder, "--name", "Car").ending == .status(.done))
    try #require(shell.types("provision", "token", folder, "--rider", "anna").ending == .status(.done))
    rider = "\(folder)/riders/anna"
  }

  private var imported: String { shell.path("home/.config/stepctl/vehicles/car/vehicle.toml") }

  @Test("asks before it trusts, and shows what is asked about also with -q")
  func question() throws {
    var shell = shell
    shell.answers = ["y"]
    let ended = shell.types("config", "import", rider, "-q")
    #expect(ended.ending == .status(.done))
    #expect(ended.output == "Car is in ~/.config/stepctl/vehicles/car/vehicle.toml\n")
    #expect(ended.notes.first == "vehicle   Car")
    #expect(ended.notes.contains("rider     anna"))
    #expect(ended.errors.hasSuffix("Trust it? [y/N] "))
    #expect(Files.exists(imported))
  }

  @Test("changes nothing when the answer is no")
  func no() throws {
    var shell = shell
    shell.answers = [""]
    let ended = shell.types("config", "import", rider)
    #expect(ended.ending == .status(.failure))
    #expect(ended.errors.hasSuffix("Trust it? [y/N] stepctl: error: not trusted; nothing was changed\n"))
    #expect(!Files.exists(imported))
  }

  @Test("trusts nothing where nobody can be asked")
  func nobody() throws {
    let pipe = shell.types("config", "import", rider)
    #expect(pipe.ending == .status(.noInput))
    #expect(
      pipe.errors == """
        stepctl: error: cannot ask whether to trust this: standard input is not a terminal
        hint: use --yes to trust it

        """)
    let forbidden = shell.types("config", "import", rider, "--no-input")
    #expect(forbidden.ending == .status(.usage))
    #expect(forbidden.errors.hasSuffix("stepctl: error: needs confirmation; use --yes\n"))
    #expect(!Files.exists(imported))
  }

  @Test("--yes imports, and says as JSON what there is")
  func json() throws {
    let ended = shell.types("config", "import", rider, "--yes", "--json", "-q")
    #expect(ended.ending == .status(.done))
    #expect(ended.errors == "")
    let object = try #require(try ended.objects.first)
    #expect(object["name"] == "Car")
    #expect(object["vehicle_file"] == .string(imported))
    #expect(object["is_new"] == true)
    #expect(object["has_rider"] == true)
    #expect(try shell.types("config", "import", rider, "--yes", "--json", "-q").objects.first?["is_new"] == false)
  }

  @Test("a vehicle's code brings no token, and the rider is told")
  func code() throws {
    let code = try #require(
      try shell.types("provision", "qr", "--vehicle", shell.path("car"), "--json").objects.first?["codes"]?.array?
        .first?["content"]?.string)
    let file = try shell.folder.write("code.txt", code)
    let ended = shell.types("config", "import", file, "--yes", "--name", "ours")
    #expect(ended.ending == .status(.done))
    #expect(ended.output == "Car is in ~/.config/stepctl/vehicles/ours/vehicle.toml\n")
    #expect(ended.notes.last == "you also need a token to move its steps; ask your operator for one")
  }

  @Test(
    "says what else a file is",
    arguments: [
      ("\u{0}\u{1}", "not an access file, a code's text or a picture (PNG, JPEG)"),
      ("<svg xmlns=\"http://www.w3.org/2000/svg\"/>", "not an access file, a code's text or a picture (PNG, JPEG)"),
      (String(repeating: "text ", count: 1 << 14), "not an access file, a code's text or a picture (PNG, JPEG)"),
      ("", "there is no text in it"),
      (" \n", "there is no text in it"),
      ("https://example.org/", "not a vehicle's code, or a damaged one: not well formed: not a compact JWS"),
      (
        "{\"uuid\":\"5f3c1c0e-7a0b-4f57-9a55-1f0f6c1b2a90\",\"stepId\":\"left\"}",
        "this is a step's code, not a vehicle's"
      ),
    ])
  func otherFiles(_ text: String, _ error: String) throws {
    let file = try shell.folder.write("file", text)
    let ended = shell.types("config", "import", file, "--yes")
    #expect(ended.ending == .status(.badData))
    #expect(ended.notes.first == "stepctl: error: \(file): \(error)")
  }

  @Test("says of a device's request that the operator answers it")
  func request() throws {
    let request = shell.path("request")
    #expect(shell.types("enroll", "--name", "anna", "--output", request).ending == .status(.done))
    let ended = shell.types("config", "import", request, "--yes")
    #expect(ended.ending == .status(.badData))
    #expect(
      ended.notes == [
        "stepctl: error: \(request): this is a device's request; give it to your operator, and import the answer"
      ])
  }

  @Test("a device that lost one of its keys enrolls again", arguments: ["device.jwk", "rider.key"])
  func lostKey(_ name: String) throws {
    let first = try #require(try shell.types("enroll", "--name", "anna", "--json").objects.first)
    #expect(unlink(shell.path("home/.config/stepctl/device/\(name)")) == 0)
    let second = try #require(try shell.types("enroll", "--name", "anna", "--json").objects.first)
    #expect(second["is_new"] == .bool(name == "device.jwk"))
    #expect((second["device_key"] == first["device_key"]) == (name == "rider.key"))
    #expect(second["request"] != first["request"])
  }

  @Test("takes a file or a picture, not both and not neither")
  func arguments() {
    for more in [[], ["file", "--qr", "picture.png"]] {
      let ended = shell.types(["config", "import"] + more)
      #expect(ended.ending == .status(.usage))
      #expect(ended.notes.first == "stepctl: error: give either a file or --qr")
    }
  }
}
