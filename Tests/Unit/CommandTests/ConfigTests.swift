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
        via      auto                             (default)
        timeout  20.0 s                           (STEPCTL_TIMEOUT)

        """)
    let object = try #require(try shell.types("config", "show", "--json").objects.first)
    #expect(object["radio"] == ["value": "bluez:hci1", "origin": "~/.config/stepctl/config.toml:1"])
    #expect(object["nfc"]?["origin"] == .string("\(shell.path("etc"))/config.toml:1"))
    #expect(object["timeout_s"]?["value"] == .number(20))
    #expect(object["vehicle_file"] == .null)
    shell.environment["STEPCTL_VIA"] = "hci1"
    let other = try #require(try shell.types("config", "show", "--json").objects.first)
    #expect(other["via"] == ["value": "hci1", "origin": "STEPCTL_VIA"])
  }

  @Test("shows the vehicle file that is meant, and what is wrong with it")
  func vehicle() throws {
    let file = try shell.vehicleFile()
    let ended = shell.types("config", "show", "--vehicle", file)
    #expect(ended.ending == .status(.done))
    #expect(
      Array(ended.lines.dropFirst(5)) == [
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

  @Test("with sudo, says whose folder was looked into")
  func sudo() throws {
    var shell = shell
    #expect(shell.types("locate").notes.last?.hasPrefix("hint: import what your operator gave you") == true)
    shell.environment["SUDO_USER"] = "anna"
    let ended = shell.types("locate")
    #expect(ended.ending == .status(.noInput))
    #expect(ended.notes.last == "hint: with sudo, ~ is root's: leave sudo out, or name anna's vehicle by --vehicle")
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

@Suite("stepctl config list and forget")
struct ConfigListTests {
  private var shell: Shell
  private let vehicles: String

  init() throws {
    shell = try Shell()
    vehicles = shell.path("home/.config/stepctl/vehicles")
    let folder = shell.path("car")
    try #require(shell.types("provision", "vehicle", folder, "--name", "Rolling Chassis").ending == .status(.done))
    try #require(shell.types("provision", "token", folder, "--rider", "anna").ending == .status(.done))
    let imported = shell.types("config", "import", "\(folder)/riders/anna", "--yes", "--name", "ours")
    try #require(imported.ending == .status(.done))
  }

  @Test("lists each known vehicle with the access to it, also one whose file is wrong")
  func list() throws {
    _ = try shell.vehicleFile("home/.config/stepctl/vehicles/Van.toml")
    try shell.folder.write("home/.config/stepctl/vehicles/wrong.toml", "name = 1\n")
    let ended = shell.types("config", "list")
    #expect(ended.ending == .status(.done) && ended.errors == "")
    #expect(ended.lines.count == 3)
    #expect(ended.lines[0] == "Van    no token")
    #expect(ended.lines[1].hasPrefix("ours   Rolling Chassis: anna: left, right, until "), "\(ended.output)")
    #expect(ended.lines[2].hasPrefix("wrong  \(vehicles)/wrong.toml:1: name: expected "), "\(ended.output)")
    let objects = try shell.types("config", "list", "--json").objects
    #expect(objects.map { $0["name"] } == ["Van", "ours", "wrong"])
    #expect(objects.map { $0["rider"] } == [.null, "anna", .null])
    #expect(objects[1]["vehicle_file"] == .string("\(vehicles)/ours/vehicle.toml"))
    #expect(objects[1]["at_server"] == .null && objects[2]["uuid"] == .null)
  }

  @Test("forgets a vehicle with its files, after an answer, and no other")
  func forget() throws {
    var shell = shell
    let van = try shell.vehicleFile("home/.config/stepctl/vehicles/van.toml")
    #expect(shell.types("config", "forget", "ours").ending == .status(.noInput))
    #expect(shell.types("config", "forget", "ours", "--no-input").ending == .status(.usage))
    shell.answers = ["n"]
    let no = shell.types("config", "forget", "ours")
    #expect(no.ending == .status(.failure))
    #expect(no.notes.first == "vehicle  Rolling Chassis (~/.config/stepctl/vehicles/ours/vehicle.toml)")
    #expect(no.notes[1].hasPrefix("access   anna: left, right, until "))
    #expect(Files.exists("\(vehicles)/ours/token.jwt"))
    shell.answers = ["y"]
    let yes = shell.types("config", "forget", "rolling chassis")
    #expect(yes.ending == .status(.done) && yes.output == "ours is forgotten\n")
    #expect(try Files.names(in: vehicles) == ["van.toml"])
    #expect(shell.types("config", "forget", "van", "--yes", "--json").ending == .status(.done))
    #expect(!Files.exists(van))
    #expect(shell.types("config", "list").notes == ["you know no vehicle yet; `stepctl config import FILE` adds one"])
  }

  @Test("forgets a vehicle by its own name, as people type it, and none where two have it")
  func forgetByName() throws {
    for name in ["one", "two"] {
      let file = try shell.vehicleFile("home/.config/stepctl/vehicles/\(name).toml")
      try shell.folder.write(
        "home/.config/stepctl/vehicles/\(name).toml",
        try TemporaryFolder.text(file).replacing("\"Van\"", with: "\"Käfer\""))
    }
    #expect(shell.types("config", "forget", "kaefer", "--yes").ending == .status(.usage))
    #expect(shell.types("config", "forget", "one", "--yes").ending == .status(.done))
    #expect(shell.types("config", "forget", "kaefer", "--yes").output == "two is forgotten\n")
  }

  @Test("forgets a vehicle by its file or its folder, and none for the folder of all")
  func forgetByPath() throws {
    let vehicles = shell.path("home/.config/stepctl/vehicles")
    let file = try shell.vehicleFile("home/.config/stepctl/vehicles/one.toml")
    _ = try shell.vehicleFile("home/.config/stepctl/vehicles/two/vehicle.toml")
    #expect(shell.types("config", "forget", vehicles, "--yes").ending == .status(.noInput))
    #expect(shell.types("config", "forget", file, "--yes").output == "one is forgotten\n")
    #expect(shell.types("config", "forget", "\(vehicles)/two", "--yes").output == "two is forgotten\n")
  }

  @Test("a vehicle that is not known, or is the system's, is not forgotten")
  func others() throws {
    let none = shell.types("config", "forget", "our", "--yes")
    #expect(none.ending == .status(.noInput))
    #expect(none.notes == ["stepctl: error: you know no vehicle \"our\"", "hint: did you mean \"ours\"?"])
    let system = try shell.vehicleFile("etc/vehicles/van.toml")
    let refused = shell.types("config", "forget", "van", "--yes")
    #expect(refused.ending == .status(.noPermission) && Files.exists(system))
    #expect(refused.notes.first == "stepctl: error: \(system) is for all users of this computer")
    try shell.folder.write("home/.config/stepctl/config.toml", "vehicle = \"ours\"\n")
    let named = shell.types("config", "forget", "ours", "--yes")
    #expect(named.notes.last == "~/.config/stepctl/config.toml:1 still names it")
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
    #expect(ended.notes.first == "vehicle  Car")
    #expect(ended.notes.contains("rider    anna"))
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

  @Test("what changes nothing needs no answer")
  func unchanged() throws {
    #expect(shell.types("config", "import", rider, "--yes").ending == .status(.done))
    let again = shell.types("config", "import", rider)
    #expect(again.ending == .status(.done))
    #expect(again.notes.contains("changes  nothing") && !again.errors.contains("Trust it?"))
    // Another token is a change, also of the same operator.
    let folder = shell.path("car")
    try #require(shell.types("provision", "token", folder, "--rider", "bo").ending == .status(.done))
    #expect(shell.types("config", "import", "\(folder)/riders/bo").ending == .status(.noInput))
  }

  @Test("the second vehicle of an operator is said to be the same operator's, if the operator has signed it")
  func sibling() throws {
    let fleet = shell.path("fleet")
    try #require(shell.types("operator", "init", fleet).ending == .status(.done))
    for (folder, name) in [(shell.path("bus"), "Bus 1"), (shell.path("tram"), "Bus 2")] {
      let made = shell.types("provision", "vehicle", folder, "--operator", fleet, "--name", name)
      try #require(made.ending == .status(.done))
    }
    func imported(_ folder: String) throws -> Shell.Ended {
      let codes = shell.types("provision", "qr", "--vehicle", folder, "--json")
      let code = try #require(try codes.objects.first?["codes"]?.array?.first?["content"]?.string)
      return shell.types("config", "import", try shell.folder.write("code.txt", code), "--yes")
    }
    let first = try imported("\(fleet)/vehicles/bus")
    #expect(first.notes.contains("         new: compare it with what the operator shows"))
    let second = try imported("\(fleet)/vehicles/tram")
    #expect(second.ending == .status(.done))
    #expect(second.notes.contains("         the same operator as Bus 1"))
    // Another operator's vehicle.
    let other = try imported(shell.path("car"))
    #expect(other.notes.contains("         new: compare it with what the operator shows"))
  }

  @Test("a folder that only names a known operator is not said to be the same operator's")
  func unsignedSibling() throws {
    let fleet = shell.path("fleet")
    try #require(shell.types("operator", "init", fleet).ending == .status(.done))
    for (folder, name) in [("bus", "Bus 1"), ("tram", "Bus 2")] {
      let made = shell.types("provision", "vehicle", shell.path(folder), "--operator", fleet, "--name", name)
      try #require(made.ending == .status(.done))
      let token = shell.types("provision", "token", "\(fleet)/vehicles/\(folder)", "--rider", "anna")
      try #require(token.ending == .status(.done))
    }
    let first = shell.types("config", "import", "\(fleet)/vehicles/bus/riders/anna", "--yes")
    #expect(first.ending == .status(.done))
    let second = shell.types("config", "import", "\(fleet)/vehicles/tram/riders/anna", "--yes")
    #expect(second.ending == .status(.done))
    #expect(second.notes.contains("         new, and nothing here is signed: accept it from the operator only"))
  }

  @Test("of several imports at once, each one ends well, and one vehicle is there")
  func together() throws {
    for _ in 0..<5 {
      let ended = try shell.together(4, "config", "import", rider, "--yes", "--json", "--name", "car")
      #expect(ended.map(\.ending) == Array(repeating: .status(.done), count: 4), "\(ended.map(\.errors))")
      #expect(try ended.count { try $0.objects.first?["is_new"] == true } == 1)
      let vehicles = shell.path("home/.config/stepctl/vehicles")
      #expect(try Files.names(in: vehicles) == ["car"])
      try StagingFolder.remove("\(vehicles)/car")
    }
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

  @Test("finds the access in a whole mail, and says of an access file that it is one")
  func mail() throws {
    let (request, access) = (shell.path("request"), shell.path("access"))
    #expect(shell.types("enroll", "--name", "eva", "--output", request).ending == .status(.done))
    let letter = try shell.folder.write(
      "letter", "To: you\nContent-Type: text/plain; charset=utf-8\n\nPlease:\n\(TemporaryFolder.text(request))\nEva\n")
    let granted = shell.types("provision", "token", shell.path("car"), "--device", letter, "-o", access)
    #expect(granted.ending == .status(.done), "\(granted.errors)")
    let text = try TemporaryFolder.text(access)
    let damaged = try shell.folder.write("damaged", text.substituting(#""token":"ey"#, by: #""token":"ay"#))
    let refused = shell.types("config", "import", damaged, "--yes")
    #expect(refused.ending == .status(.badData))
    #expect(
      refused.notes.first?.hasPrefix("stepctl: error: \(damaged): an access file that cannot be used: ") == true)
    #expect(refused.notes.last == "hint: it was changed on its way, or is not whole: ask your operator for it again")
    let mail = try shell.folder.write(
      "mail", "From: fleet@example.org\nSubject: =?utf-8?q?Zugang?=\n\nDear Eva,\n\n> \(text)\n\nRegards\n")
    #expect(shell.types("config", "import", mail, "--yes").ending == .status(.done))
    #expect(Files.exists(imported))
  }

  @Test("a rider's certificate is no authority's")
  func authority() throws {
    try Files.replace("\(rider)/ca.pem", with: Files.read("\(rider)/rider.pem"), mode: 0o644)
    let ended = shell.types("config", "import", rider, "--yes")
    #expect(ended.ending == .status(.badData))
    #expect(ended.notes.first?.contains("it is no authority's") == true, "\(ended.errors)")
    try Files.replace("\(rider)/ca.pem", with: "\u{FEFF}rubbish".utf8, mode: 0o644)
    #expect(
      shell.types("config", "import", rider, "--yes").notes.first
        == "stepctl: error: \(rider)/ca.pem: cannot read the certificate: it is damaged, or not a certificate")
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

  @Test("of several enrolments at once, one makes the key, and all tell it")
  func enrolTogether() throws {
    for _ in 0..<10 {
      let ended = try shell.together(4, "enroll", "--name", "anna", "--json")
      #expect(ended.map(\.ending) == Array(repeating: .status(.done), count: 4), "\(ended.map(\.errors))")
      let objects = try ended.flatMap { try $0.objects }
      #expect(objects.count { $0["is_new"] == true } == 1)
      let known = try #require(try shell.types("enroll", "--name", "anna", "--json").objects.first)
      #expect(known["is_new"] == false && objects.allSatisfy { $0["device_key"] == known["device_key"] })
      try StagingFolder.remove(shell.path("home/.config/stepctl/device"))
    }
  }

  @Test("of several enrolments at once that set one passphrase, each one ends well")
  func protectTogether() throws {
    var shell = shell
    let file = try shell.folder.write("passphrase", "correct horse battery\n")
    // Who comes later needs the present one.
    shell.environment["STEPCTL_PASSPHRASE_FILE"] = file
    let ended = try shell.together(3, "enroll", "--name", "anna", "--passphrase-file", file, "--json")
    #expect(ended.map(\.ending) == Array(repeating: .status(.done), count: 3), "\(ended.map(\.errors))")
    #expect(Set(try ended.flatMap { try $0.objects.map { $0["device_key"]?.string } }).count == 1)
  }

  @Test("on a terminal a passphrase that is too short, or typed in two ways, is asked for again; elsewhere not")
  func passphraseAgain() throws {
    var shell = shell
    let typed = ["enroll", "--name", "anna", "--passphrase"]
    #expect(shell.types(typed).ending == .status(.noInput))
    let good = "correct horse battery"
    shell.answers = ["short", "", good, "another horse", good, good]
    let ended = shell.types(typed)
    #expect(ended.ending == .status(.done))
    for fault in ["a passphrase has 8 to 256 bytes", "an empty passphrase", "these are two different passphrases"] {
      #expect(ended.errors.contains("\(fault)\nnew passphrase: "), "\(fault)")
    }
    #expect(try TemporaryFolder.text(shell.path("home/.config/stepctl/device/device.jwk")).contains("ENCRYPTED"))
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

  @Test("takes a file or a picture, not both")
  func arguments() {
    let ended = shell.types("config", "import", "file", "--qr", "picture.png")
    #expect(ended.ending == .status(.usage))
    #expect(ended.notes.first == "stepctl: error: give either a file or --qr")
  }

  @Test(
    "what a sheet prints looks for a camera",
    .enabled(if: !Files.exists("/dev/video0"), "this computer's camera would be used"),
    arguments: [["config", "import"], ["locate", "--by", "qr", "--vehicle", "van.toml"]])
  func camera(_ typed: [String]) throws {
    let file = try shell.vehicleFile()
    let ended = shell.types(typed.map { $0 == "van.toml" ? file : $0 })
    #expect(ended.ending == .status(.unavailable))
    #expect(ended.notes.first?.hasPrefix("stepctl: error: there is no camera to ") == true)
    #expect(ended.notes.last?.hasPrefix("hint: ") == true)
  }
}
