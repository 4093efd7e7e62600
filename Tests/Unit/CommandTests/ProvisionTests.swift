import Domain
import Encoding
import Glibc
import SystemIO
import Terminal
import TestSupport
import Testing

@testable import CommandParts
@testable import FileFormats

@Suite("stepctl provision vehicle and token")
struct ProvisionTests {
  private let shell: Shell
  private let car: String

  init() throws {
    shell = try Shell()
    car = shell.path("car")
  }

  private func makes(_ more: String...) -> Shell.Ended { shell.types(["provision", "vehicle", car] + more) }

  @Test("a vehicle has the steps that were asked for")
  func steps() throws {
    let van = shell.types("provision", "vehicle", shell.path("van"), "--steps", "entry=right")
    #expect(van.ending == .status(.done))
    #expect(van.lines.contains("  steps       entry (at the right side, major 1)"))
    let file = try VehicleFile(reading: shell.path("van/vehicle.toml"))
    #expect(file.vehicle.steps == [Step(id: StepID("entry")!, side: .right, major: 1)])
    #expect(shell.types("provision", "token", shell.path("van"), "--rider", "anna").ending == .status(.done))
    #expect(
      shell.types("provision", "vehicle", shell.path("bus"), "--steps", "left").lines[2].contains("left (major 1)"))
    for wrong in ["", "top", "left,left", "a=left,b=left", "left,", "a=b=left", "left,right,left"] {
      let ended = shell.types("provision", "vehicle", shell.path("no"), "--steps", wrong)
      #expect(ended.ending == .status(.usage), "\(wrong)")
    }
    let beacon = shell.types("provision", "vehicle", shell.path("no"), "--steps", "left", "--beacon", "right=hci0")
    #expect(beacon.ending == .status(.usage) && !Files.exists(shell.path("no")))
  }

  @Test("a file in place of a folder is a mistake of typing")
  func noFolder() throws {
    #expect(makes().ending == .status(.done))
    let file = "\(car)/vehicle.toml"
    for (typed, whose) in [
      (["provision", "token", "\(car)/stepd.toml", "--rider", "anna"], "vehicle"),
      (["provision", "vehicle", file], "vehicle"),
      (["provision", "keys", file], "vehicle"), (["operator", "tokens", "\(car)/stepd.toml"], "operator"),
    ] {
      let ended = shell.types(typed)
      #expect(ended.notes.first == "stepctl: error: give the \(whose)'s folder: \(typed[2]) is a file", "\(typed)")
      #expect(ended.ending == .status(.usage), "\(typed)")
    }
  }

  @Test("says of a folder why no vehicle of an operator can be in it")
  func foldersOfOperators() throws {
    let fleet = shell.path("fleet")
    #expect(shell.types("operator", "init", fleet).ending == .status(.done))
    let named = shell.types("provision", "vehicle", shell.path("Käfer 1"), "--operator", fleet)
    #expect(named.ending == .status(.usage))
    #expect(named.notes.first?.hasPrefix("stepctl: error: a folder named \"Käfer 1\" cannot be a vehicle's") == true)
    #expect(named.notes.last?.hasSuffix("stepctl provision vehicle kaefer-1 --name 'Käfer 1'") == true)
    let inside = shell.types("provision", "vehicle", "\(fleet)/vehicles/bus", "--operator", fleet)
    #expect(inside.ending == .status(.usage))
    #expect(inside.notes.last == "hint: choose a folder outside; it is made for the vehicle itself")
    #expect(!Files.exists("\(fleet)/vehicles/bus") && !Files.exists(shell.path("Käfer 1")))
    #expect(
      shell.types("provision", "vehicle", shell.path("kaefer"), "--name", "Käfer 1", "--operator", fleet).ending
        == .status(.done))
  }

  @Test("a vehicle is named in the same ways everywhere")
  func names() throws {
    #expect(makes("--name", "Käfer").ending == .status(.done))
    let rider = ["--rider", "anna", "--force"]
    for typed in [
      [car], ["\(car)/"], ["\(car)/vehicle.toml"], ["--vehicle", car], ["--vehicle", "\(car)/vehicle.toml"],
    ] {
      #expect(shell.types(["provision", "token"] + typed + rider).ending == .status(.done), "\(typed)")
      #expect(shell.types(["provision", "renew"] + typed).ending == .status(.done), "\(typed)")
      #expect(shell.types(["provision", "beacon", "--step", "left"] + typed).ending == .status(.done), "\(typed)")
      #expect(shell.types(["provision", "qr", "--step", "left"] + typed).ending == .status(.done), "\(typed)")
    }
    #expect(shell.types("provision", "renew", car, "--vehicle", car).ending == .status(.usage))
    #expect(shell.types("provision", "qr", car, "--vehicle", car).ending == .status(.usage))
    #expect(shell.types("provision", "renew").notes.first == "stepctl: error: give the vehicle's folder")
    // The name of a known one.
    #expect(shell.types("config", "import", "\(car)/riders/anna", "--yes").ending == .status(.done))
    #expect(Files.exists(shell.path("home/.config/stepctl/vehicles/kaefer/vehicle.toml")))
    for name in ["kaefer", "Käfer", "KÄFER"] {
      let shown = shell.types("config", "show", "--vehicle", name)
      #expect(shown.ending == .status(.done) && shown.lines.contains { $0.hasPrefix("Käfer (") }, "\(name)")
    }
    #expect(shell.types("config", "show", "--vehicle", "Kafer").ending == .status(.noInput))
  }

  @Test("makes a vehicle, and says what to do next")
  func vehicle() throws {
    let ended = makes("--uuid", Shell.vehicle.description, "--port", "18883")
    #expect(ended.ending == .status(.done))
    #expect(ended.lines[0] == "car is in \(car)")
    #expect(ended.lines[1] == "  uuid        \(Shell.vehicle)")
    #expect(ended.lines[3] == "  topic       vehicles/\(Shell.vehicle)")
    #expect(ended.lines[4] == "  beacons     other devices; see `stepctl provision beacon`")
    #expect(ended.lines[5].hasPrefix("  broker      localhost:18883, certificates until "))
    #expect(ended.notes.contains("  stepctl provision token \(car) --rider NAME"))
    #expect(Files.exists("\(car)/vehicle.toml"))
    let again = makes()
    #expect(again.ending == .status(.failure))
    #expect(
      again.errors == """
        stepctl: error: there is a vehicle in \(car)
        hint: `provision renew` and `update` keep it; --force replaces it, and its riders need new tokens

        """)
  }

  @Test("prints as JSON what it made, by its own clock")
  func json() throws {
    let ended = makes("--json", "-q", "--name", "Rolling Chassis", "--beacon", "left=hci0", "--beacon", "right=hci1")
    #expect(ended.ending == .status(.done))
    #expect(ended.errors == "")
    let object = try #require(try ended.objects.first)
    #expect(object["name"] == "Rolling Chassis")
    #expect(
      object["beacons"] == [["step": "left", "adapter": "hci0"], ["step": "right", "adapter": "hci1"]])
    #expect(object["certificates_end"] == .integer(shell.now.microseconds / 1_000_000 + 825 * 86400))
    let files = try #require(object["files"]?.array?.compactMap { $0.string })
    #expect(files.allSatisfy { Files.exists($0) } && files.contains("\(car)/stepd.toml"))
  }

  @Test("relocates and renews a vehicle; the flags of before name the command")
  func upkeep() throws {
    try #require(makes("-q").ending == .status(.done))
    let relocated = shell.types("provision", "relocate", car)
    #expect(relocated.output == "rewrote \(car)/mosquitto.conf\n")
    #expect(
      try shell.types("provision", "relocate", car, "--json").objects == [["files": [.string("\(car)/mosquitto.conf")]]]
    )
    var later = shell
    later.now.microseconds += 86400 * 1_000_000
    let renewed = later.types("provision", "renew", car, "--json")
    #expect(try renewed.objects == [["certificates_end": .integer(later.now.microseconds / 1_000_000 + 825 * 86400)]])
    for name in ["relocate", "renew", "update", "start"] {
      let refused = makes("--\(name)")
      #expect(refused.ending == .status(.usage))
      #expect(
        refused.notes == ["stepctl: error: --\(name) is a command now", "hint: `stepctl provision \(name) \(car)`"])
    }
  }

  @Test("warns where one radio sends both beacons, and refuses radios for steps that are not there")
  func beacons() throws {
    let both = makes("--beacon", "hci0")
    #expect(both.ending == .status(.done))
    #expect(both.notes.contains("one radio sends both beacons: they cannot tell the sides apart"))
    #expect(both.lines[4] == "  beacons     left with hci0, right with hci0, minors rotate")
    let other = makes("--beacon", "rear=hci0")
    #expect(other.ending == .status(.usage))
    #expect(other.notes.first == "stepctl: error: --beacon: the vehicle has no step rear, only left, right")
    let twice = makes("--beacon", "hci0", "--beacon", "left=hci1")
    #expect(twice.ending == .status(.usage))
    #expect(twice.notes.first == "stepctl: error: --beacon: the step left has two radios")
  }

  @Test("gives a rider a token, for a time from now")
  func token() throws {
    try #require(makes("-q").ending == .status(.done))
    let ended = shell.types("provision", "token", car, "--rider", "anna", "--steps", "left", "--for", "2d")
    #expect(ended.ending == .status(.done))
    let file = "\(car)/riders/anna/vehicle.toml"
    let until = dateAndTime(shell.now.microseconds / 1_000_000 + 2 * 86400)
    #expect(ended.output == "anna: left, until \(until) (2 days): \(file)\n")
    #expect(ended.errors == "try: stepctl open --vehicle \(file)\n")
    let again = shell.types("provision", "token", car, "--rider", "anna")
    #expect(again.ending == .status(.failure))
    #expect(
      again.errors
        == "stepctl: error: \(car)/riders/anna already exists\nhint: --force renews its token\n")
    let renewed = shell.types("provision", "token", car, "--rider", "anna", "--force", "--json", "-q")
    #expect(renewed.errors == "")
    let object = try #require(try renewed.objects.first)
    #expect(object["steps"] == ["left", "right"])
    #expect(object["not_before"] == .integer(shell.now.microseconds / 1_000_000))
    #expect(object["expires"] == .integer(shell.now.microseconds / 1_000_000 + 8 * 3600))
  }

  @Test("refuses steps and lifetimes that there are not")
  func wrongTokens() throws {
    try #require(makes("-q").ending == .status(.done))
    let rear = shell.types("provision", "token", car, "--rider", "anna", "--steps", "rear")
    #expect(rear.ending == .status(.usage))
    let long = shell.types("provision", "token", car, "--rider", "anna", "--for", "36500d")
    #expect(long.ending == .status(.usage))
    #expect(long.errors.hasPrefix("stepctl: error: the token would outlive the vehicle's "))
    let elsewhere = shell.types("provision", "token", shell.path("nowhere"), "--rider", "anna")
    #expect(elsewhere.ending == .status(.noInput))
    #expect(!Files.exists("\(car)/riders"))
  }
}

@Suite("stepctl provision beacon and qr")
struct ProvisionLabelTests {
  private let shell: Shell
  private let file: String

  init() throws {
    shell = try Shell()
    file = try shell.vehicleFile()
  }

  @Test("shows what to program into a beacon, and notes it")
  func beacon() throws {
    let ended = shell.types("provision", "beacon", "--step", "right", "--vehicle", file)
    #expect(ended.ending == .status(.done))
    #expect(
      ended.lines == [
        "right:", "  UUID            \(Shell.vehicle)", "  major           2", "  minor           1",
        "  measured power  -59 dBm at 1 m", "  interval        100 ms",
        "  bytes           0201061AFF4C0002155F3C1C0E7A0B4F579A551F0F6C1B2A9000020001C5",
      ])
    #expect(ended.notes.first?.hasPrefix("Anyone who has heard this beacon can send a copy from elsewhere") == true)
    let saved = shell.types(
      "provision", "beacon", "--step", "right", "--vehicle", file, "--minor", "4711", "--measured-power", "-63",
      "--save", "-q")
    #expect(saved.errors == "")
    #expect(saved.lines.last == "wrote \(file); restart stepd to apply this")
    let json = shell.types("provision", "beacon", "--step", "right", "--vehicle", file, "--json")
    let object = try #require(try json.objects.first)
    #expect(object["minor"] == 4711)
    #expect(object["measured_power_dbm"] == .integer(-63))
    #expect(object["saved"] == false)
    let wrong = shell.types("provision", "beacon", "--step", "right", "--vehicle", file, "--measured-power", "0")
    #expect(wrong.notes.first == "stepctl: error: --measured-power is below 0 dBm")
  }

  @Test("draws a step's code on a terminal that has room for it")
  func terminal() throws {
    var shell = shell
    shell.size = Screen.Size(rows: 40, columns: 80)
    let arguments = ["provision", "qr", "--step", "left", "--vehicle", file]
    let colored = shell.types(arguments)
    #expect(colored.ending == .status(.done))
    #expect(colored.lines.allSatisfy { $0.hasPrefix("\u{1B}[") && $0.hasSuffix("\u{1B}[0m") })
    #expect(!shell.types(arguments + ["--no-color"]).output.contains("\u{1B}"))
    for (name, value) in [("NO_COLOR", "1"), ("TERM", "dumb")] {
      var plain = shell
      plain.environment[name] = value
      #expect(!plain.types(arguments).output.contains("\u{1B}"))
    }
    let binary = shell.types(arguments + ["--format", "png"])
    #expect(binary.ending == .status(.usage))
    #expect(binary.errors == "stepctl: error: cannot print png on a terminal\nhint: use --output\n")
    shell.size = Screen.Size(rows: 40, columns: 40)
    let narrow = shell.types(arguments)
    #expect(narrow.ending == .status(.usage))
    #expect(
      narrow.errors == """
        stepctl: error: the code needs 41 columns, and the terminal has 40
        hint: use --output with a name that ends in .png

        """)
  }

  @Test("writes a picture of the kind that the name ends in, or prints what is in the code")
  func files() throws {
    for (ending, start) in [("png", [0x89, 0x50]), ("svg", Array("<".utf8)), ("pdf", Array("%PDF".utf8))] {
      let picture = shell.path("left.\(ending)")
      let ended = shell.types("provision", "qr", "--step", "left", "--vehicle", file, "--output", picture)
      #expect(ended.output == "wrote \(picture)\n")
      #expect(try Files.read(picture).starts(with: start))
    }
    let ended = shell.types("provision", "qr", "--sheet", "--vehicle", file, "--json")
    let codes = try #require(try ended.objects.first?["codes"]?.array)
    #expect(codes.map { $0["step"] } == ["left", "right"])
    #expect(
      codes[0]["content"] == .string("stepctl:\(Shell.vehicle)/left"))
  }

  @Test("a rider cannot make the vehicle's code, and is told what there is")
  func vehicleCode() throws {
    let ended = shell.types("provision", "qr", "--vehicle", file)
    #expect(ended.ending == .status(.noInput))
    #expect(
      ended.notes.last
        == "hint: use --vehicle with the operator's folder of the vehicle, or --step for a step's code")
  }
}
