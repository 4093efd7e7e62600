import ArgumentParser
import Domain
import Encoding
import FoundationEssentials
import Glibc
import Terminal
import TestSupport
import Testing

@testable import CommandParts
@testable import OperatorCommands
@testable import RiderCommands

@Suite("What is typed wrongly, and what a command says of itself")
struct UsageTests {
  private let shell: Shell

  init() throws { shell = try Shell() }

  /// Of all commands.
  private var allExamples: [String: [Examples.Example]] {
    Examples.of.merging(Examples.ofTechnicians) { first, _ in first }
  }

  @Test(
    "one line says what is wrong, and a hint what to type",
    arguments: [
      ("opne --side left", "there is no command `stepctl opne`", "did you mean `stepctl open`?"),
      ("provision tga", "there is no command `stepctl provision tga`", "did you mean `stepctl provision tag`?"),
      ("unleash", "there is no command `stepctl unleash`", "`stepctl --help` lists the commands"),
      ("extend 2h", "there is no command `stepctl extend`", "did you mean `stepctl bookings extend`?"),
      ("config nothing", "there is no command `stepctl config nothing`", "`stepctl config --help` lists the commands"),
      ("scan --jsno", "unknown option \"--jsno\"", "did you mean \"--json\"?"),
      ("--nonsense", "unknown option \"--nonsense\"", "`stepctl --help` explains how to use it"),
      (
        "open left --side right", "--side right contradicts left", "`stepctl open --help` explains how to use it"
      ),
      (
        "open --side top", "the value \"top\" is invalid for \"--side <side>\"",
        "use \"left\", \"right\" or \"facing\""
      ),
      (
        "open car", "the value \"car\" is invalid for \"<left|right|facing>\"",
        "use \"left\", \"right\" or \"facing\"; name a vehicle with --vehicle"
      ),
      ("open left car", "unexpected argument \"car\"", "name a vehicle with --vehicle"),
      ("close left right", "unexpected argument \"right\"", "`stepctl close --help` explains how to use it"),
      (
        "operator tokens --vehicle car", "unknown option \"--vehicle\"",
        "name the vehicle without an option: stepctl operator tokens <dir>"
      ),
      ("scan one", "unexpected argument \"one\"", "`stepctl scan --help` explains how to use it"),
      (
        "stop --side facing", "the value \"facing\" is invalid for \"--side <side>\"", "use \"left\" or \"right\""
      ),
      (
        "calibrate --seconds 1", "--seconds takes 2 to 120 seconds",
        "`stepctl calibrate --help` explains how to use it"
      ),
      (
        "provision token  --rider alice", "the vehicle's folder has no name",
        "`stepctl provision token --help` explains how to use it"
      ),
      // What is mistyped comes before what is missing.
      ("provision token --ridr alice", "unknown option \"--ridr\"", "did you mean \"--rider\"?"),
      ("provision qr --side left", "unknown option \"--side\"", "did you mean \"--step\"?"),
      ("open --step left", "unknown option \"--step\"", "did you mean \"--side\"?"),
      ("provision tag --stpe left", "unknown option \"--stpe\"", "did you mean \"--step\"?"),
      ("open lfet --sdie left", "the value \"lfet\" is invalid for \"<left|right|facing>\"", "did you mean \"left\"?"),
      ("stop --side=rigth", "the value \"rigth\" is invalid for \"--side <side>\"", "did you mean \"right\"?"),
      ("help nonsense", "there is no command `stepctl nonsense`", "`stepctl --help` lists the commands"),
      ("help provision tga", "there is no command `stepctl provision tga`", "did you mean `stepctl provision tag`?"),
      (
        "help open x", "there is no command `stepctl open x`", "`stepctl open --help` explains how to use it"
      ),
      ("", "the command is empty", "`stepctl --help` lists the commands"),
      ("provision ", "the command is empty", "`stepctl provision --help` lists the commands"),
      ("stop --side left --side right", "--side is given twice", "give it once"),
      ("open --radio hci0 --radio=hci1", "--radio is given twice", "give it once"),
      (
        "provision token car --rider a --steps left --steps left", "--steps names a step twice",
        "`stepctl provision token --help` explains how to use it"
      ),
      (
        "--side left open", "unknown option \"--side\"",
        "the options of a command come after it: stepctl open --side left"
      ),
      (
        "-v --watch locate", "unknown option \"--watch\"",
        "the options of a command come after it: stepctl locate --watch"
      ),
      (
        "--vehicle locate --wtach open", "unknown option \"--wtach\"",
        "the options of a command come after it: stepctl open --watch"
      ),
      ("--jsn", "unknown option \"--jsn\"", "did you mean \"--json\"?"),
      (
        "book car --for 0h",
        "the value \"0h\" is invalid for \"--for <time>\": one number above 0 and one unit, as 45m, 2h or 3d",
        "`stepctl book --help` explains how to use it"
      ),
      (
        "book car --from tomorrow --for 1h",
        "the value \"tomorrow\" is invalid for \"--from <time>\": a time is 2026-11-23T08:00, 08:00 for the next one, or now",
        "`stepctl book --help` explains how to use it"
      ),
      (
        "status --timeout 10y", "the value \"10y\" is invalid for \"--timeout <seconds>\"",
        "how long to listen and to wait, 0.1 s to 1 h, as 10s or 2m (default: 10)"
      ),
      (
        "locate --interval -1", "the value \"-1\" is invalid for \"--interval <seconds>\"",
        "time between two decisions with --watch (default: 0.5)"
      ),
      (
        "status --timeout -1", "the value \"-1\" is invalid for \"--timeout <seconds>\"",
        "how long to listen and to wait, 0.1 s to 1 h, as 10s or 2m (default: 10)"
      ),
      (
        "open --wait -5", "the value \"-5\" is invalid for \"--wait <seconds>\"",
        "how long to wait while something on the road comes towards the step, as 20s or 2m (default: 20)"
      ),
      ("open --wait 11m", "--wait takes 0 to 600 seconds", "`stepctl open --help` explains how to use it"),
      // What a hint says can be typed: an option that the command does not have is not put behind the command.
      ("--no-input status", "unknown option \"--no-input\"", "`stepctl status --help` explains how to use it"),
      ("--yes -v status", "unknown option \"--yes\"", "`stepctl status --help` explains how to use it"),
      ("-qz status", "unknown option \"-qz\"", "`stepctl status --help` explains how to use it"),
      (
        "provision token car --rider a --for -1h", "the value \"-1h\" is invalid for \"--for <time>\"",
        "how long the token is valid, 1s to 36500d: 45s, 30m, 8h or 7d"
      ),
      (
        "provision vehicle car --port 70000", "the value \"70000\" is invalid for \"--port <port>\"",
        "the broker's port, 1 to 65535"
      ),
      (
        "find --to 100,9", "the value \"100,9\" is invalid for \"--to <place>\"",
        "where to: latitude and longitude, as in 48.7758,9.1829 (default: the vehicle's [place], else its fleet's)"
      ),
    ])
  func oneLine(_ typed: String, _ error: String, _ hint: String) {
    let arguments = typed.split(separator: " ", omittingEmptySubsequences: false).map(String.init)
    let ended = shell.types(arguments)
    #expect(ended.ending == .status(.usage))
    #expect(ended.output == "")
    #expect(ended.errors == "stepctl: error: \(error)\nhint: \(hint)\n")
  }

  @Test("a help text says each default once", arguments: commands)
  func defaults(_ command: [String]) {
    let words = shell.types(command + ["--help"]).output.split(whereSeparator: \.isWhitespace)
    #expect(words.joined(separator: " ").firstMatch(of: #/\(default: [^)]*\)\.? \(default: /#) == nil)
  }

  /// As they are typed, without the program.
  private static let commands: [[String]] = {
    func below(_ command: any ParsableCommand.Type, _ words: [String]) -> [[String]] {
      [words] + command.configuration.subcommands.flatMap { below($0, words + [$0._commandName]) }
    }
    return Array(below(StepctlOperatorCommand.self, []).dropFirst())
  }()

  @Test("help is a result, of 80 columns at most", arguments: commands)
  func help(_ words: [String]) throws {
    for flags in [["--help"], ["-h"], ["--help", "--all"]] {
      let ended = shell.types(words + flags)
      #expect(ended.ending == .status(.done))
      #expect(ended.errors == "")
      let usage = try #require(ended.lines.first { $0.hasPrefix("USAGE: ") })
      #expect(usage.hasPrefix((["USAGE: stepctl"] + words).joined(separator: " ")))
      #expect(ended.lines.allSatisfy { $0.count <= 80 })
    }
    #expect(shell.types(words + ["--version"]).lines.first == Program.version)
  }

  @Test("help lists a rider's commands and options; with --all it lists everything")
  func helpForAll() {
    func help(_ typed: String) -> String {
      shell.types(typed.split(separator: " ").map(String.init)).output
    }
    let technicians = ["scan", "calibrate", "evaluate", "provision", "operator", "traffic"].map { "\n  \($0) " }
    let details = ["--call-radio", "h4:tcp:"]
    let brief = help("help")
    #expect(["open", "doctor", "book"].allSatisfy { brief.contains("\n  \($0) ") })
    #expect((technicians + details).allSatisfy { !brief.contains($0) })
    #expect(brief.contains("\nMORE, FOR TECHNICIANS: stepctl help --all\n"))
    #expect(brief == help("--help"))
    let all = help("help --all")
    #expect((technicians + details).allSatisfy { all.contains($0) })
    #expect(!all.contains("MORE, FOR"))
    #expect(all == help("--help --all") && all == help("--help-hidden"))
    for command in ["open", "close"] {
      #expect(details.allSatisfy { !help("help \(command)").contains($0) })
      #expect(help("\(command) --help").contains("\nMORE, FOR TECHNICIANS: stepctl help \(command) --all\n"))
      #expect(details.allSatisfy { help("help \(command) --all").contains($0) })
      #expect(help("help --all \(command)") == help("\(command) -h --all"))
    }
    #expect(help("help bookings list").contains("--all"))
    #expect(!help("help bookings list").contains("MORE, FOR"))
  }

  @Test(
    "options of every command may stand before it",
    arguments: ["--json --vehicle van.toml config show", "-q --vehicle=van.toml --json config show"])
  func optionsBefore(_ typed: String) throws {
    let file = try shell.vehicleFile()
    let arguments = typed.replacing("van.toml", with: file).split(separator: " ").map(String.init)
    let ended = shell.types(arguments)
    #expect(ended.ending == .status(.done))
    #expect(try ended.objects.first?["vehicle_file"]?["path"] == .string(file))
  }

  @Test(
    "a failure is an object too, where JSON was asked for",
    arguments: [
      ("status --json", Domain.ExitStatus.noInput, "no_input"), ("open --json --sdie left", .usage, "usage"),
      ("--json nonsense", .usage, "usage"), ("config show --json --timeout 0", .usage, "usage"),
      ("locate --json --vehicle none.toml", .noInput, "no_input"),
    ])
  func failures(_ typed: String, _ status: Domain.ExitStatus, _ code: String) throws {
    let ended = shell.types(typed.split(separator: " ").map(String.init))
    #expect(ended.ending == .status(status))
    let object = try #require(try ended.objects.first)
    #expect(object["outcome"] == "failed")
    #expect(object["code"] == .string(code))
    #expect(object["exit"] == .integer(Int64(status.rawValue)))
    let message = try #require(object["message"]?.string)
    #expect(ended.notes.first == "stepctl: error: \(message)")
    #expect(object["hint"]?.string.map { "hint: \($0)" } == ended.notes.dropFirst().first)
  }

  @Test("alone it says where one stands, and what to type next")
  func alone() throws {
    let none = shell.types()
    #expect(none.ending == .status(.done))
    #expect(none.lines.first == "vehicle  none: you know no vehicle yet")
    #expect(none.lines.contains { $0.contains("stepctl login URL") })
    #expect(none.lines.contains { $0.contains("stepctl config import FILE") })
    let known = shell.types("--vehicle", try shell.vehicleFile())
    #expect(known.lines.contains("token    none; you need a token to move its steps"))
    #expect(known.lines.contains { $0.contains("stepctl enroll") })
    let object = try #require(try shell.types("--json").objects.first)
    #expect(object["state"] == "no_vehicle")
    #expect(shell.types("--timeout").errors.hasPrefix("stepctl: error: missing value for \"--timeout"))
  }

  @Test("every command has examples, and they can be typed")
  func examples() throws {
    func visit(_ command: any ParsableCommand.Type, _ typed: String) throws {
      let examples = try #require(allExamples[typed], "\(typed)")
      let help = shell.types(typed.split(separator: " ").dropFirst().map(String.init) + ["--help"])
      for example in examples {
        #expect(help.output.contains("  \(example.typed)"))
        let words = example.typed.replacing("sudo ", with: "").replacing("'Rolling Chassis'", with: "Rolling-Chassis")
          .split(separator: " ")
        if words.count > 1 {
          #expect(throws: Never.self) { try StepctlOperatorCommand.parseAsRoot(words.dropFirst().map(String.init)) }
        }
      }
      #expect(help.output.contains("\nMANUAL: man \(typed.replacing(" ", with: "-"))"))
      for child in command.configuration.subcommands {
        try visit(child, "\(typed) \(child.configuration.commandName ?? "")")
      }
    }
    try visit(StepctlOperatorCommand.self, "stepctl")
    for typed in allExamples.keys {
      #expect(
        shell.types(typed.split(separator: " ").dropFirst().map(String.init) + ["--help"]).ending == .status(.done),
        "\(typed)")
    }
  }

  @Test("what is read without ArgumentParser is what ArgumentParser reads, whatever is typed")
  func plain() throws {
    let words = [
      "left", "right", "facing", "--side", "--json", "--quiet", "-q", "--by", "beacon", "qr", "--vehicle", "car",
      "--radio", "hci0", "--nfc", "--qr", "-", "--timeout", "10s", "", "--", "--watch", "-v", "--wait", "--side=left",
      "--help", "--jsno", "-qv", "--no-color",
    ]
    var random = SplitMix(71)
    var taken = 0
    for _ in 0..<600 {
      let typed = (0..<Int.random(in: 0...5, using: &random)).map { _ in words.randomElement(using: &random)! }
      for command in [Open.self, Close.self, Stop.self, Status.self] as [any RequestCommand.Type] {
        let name = command.configuration.commandName!
        guard let plain = PlainWords.request([name] + typed) else { continue }
        taken += 1
        #expect(dumped(plain) == dumped(try command.parse(typed).request), "\(name) \(typed)")
      }
    }
    #expect(taken > 100)
  }

  @Test(
    "what is typed most is read without ArgumentParser",
    arguments: [
      "open", "close", "open left", "open facing --json", "close --side right -q",
      "open --by qr",
      "open --by qr --qr /dev/video0 --vehicle car --radio bluez:hci0 --nfc pn532_uart:/dev/ttyUSB0 --timeout 2m",
      "stop", "stop --side left --json", "status --vehicle car --timeout 5s", "status car -q",
    ])
  func isPlain(_ typed: String) {
    #expect(PlainWords.request(typed.split(separator: " ").map(String.init)) != nil)
  }

  private func dumped(_ request: any Request) -> String {
    var text = ""
    dump(request, to: &text)
    return text
  }

  @Test("help is as wide as the terminal")
  func wideHelp() throws {
    var shell = shell
    shell.size = Screen.Size(rows: 24, columns: 132)
    #expect(shell.types("calibrate", "--help").lines.contains { (81...132).contains($0.count) })
  }

  @Test("the version says for which processor, and with which libraries")
  func version() {
    let lines = shell.types("--version").lines
    #expect(lines.contains("architecture \(Program.architecture)"))
    #expect(lines.contains { $0.hasPrefix("OpenSSL ") })
  }

  @Test("a group without a command shows what there is")
  func group() {
    let ended = shell.types("provision")
    #expect(ended.ending == .status(.done))
    #expect(ended.output == shell.types("provision", "--help").output)
    #expect(shell.types("help", "provision", "tag").output == shell.types("provision", "tag", "--help").output)
  }

  @Test("output that cannot be written is an error, and a reader that went away ends the command as SIGPIPE does")
  func output() {
    var shell = shell
    for arguments in [["--help"], ["config", "path"], ["config", "show", "--json"]] {
      shell.outputFault = ENOSPC
      let full = shell.types(arguments)
      #expect(full.ending == .status(.inputOutput))
      #expect(full.errors == "stepctl: error: cannot write to standard output: No space left on device\n")
      shell.outputFault = EPIPE
      let alone = shell.types(arguments)
      #expect(alone.ending == .signal(SIGPIPE))
      #expect(alone.errors == "")
    }
  }
}

@Suite("The version")
struct VersionTests {
  @Test("stands in one place")
  func onePlace() throws {
    let number = /"\d+\.\d+\.\d+"/
    var places: [String] = []
    for folder in ["Terminal", "Commands", "Programs"] {
      for file in try FileManager.default.subpathsOfDirectory(atPath: "\(Repository.root)/Sources/\(folder)")
      where file.hasSuffix(".swift") && !file.hasSuffix("GrayPicture+PNG.swift") {
        let text = try Repository.text("Sources/\(folder)/\(file)")
        places += text.matches(of: number).map { "\(folder)/\(file): \($0.output)" }
      }
    }
    #expect(places == [])
    let header = try Repository.text("Sources/Libraries/CBuild/include/cbuild.h")
    #expect(header.matches(of: number).map { String($0.output) } == ["\"\(Program.version)\""])
  }

  @Test("is that of the Debian packages")
  func packages() throws {
    let entry = try Repository.text("debian/changelog").prefix { $0 != "\n" }
    #expect(entry.hasPrefix("stepctl (\(Program.version)) "))
  }

  @Test("is the newest in the changelog, or comes after it, and no page names another")
  func papers() throws {
    let released = try Repository.text("CHANGELOG.md").matches(of: /(?m)^## \[?(\d+)\.(\d+)\.(\d+)/)
      .map { [$0.1, $0.2, $0.3].compactMap { Int($0) } }
    let parts = Program.version.split(separator: ".").compactMap { Int($0) }
    #expect(parts.count == 3)
    #expect(released.allSatisfy { !parts.lexicographicallyPrecedes($0) })
    for page in try Repository.names(in: "man") {
      let named = try Repository.text("man/\(page)").matches(of: /stepctl (\d+\.\d+\.\d+)/).map { String($0.1) }
      #expect(named.allSatisfy { $0 == Program.version }, "\(page)")
    }
  }
}
