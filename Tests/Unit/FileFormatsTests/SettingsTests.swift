import TestSupport
import Testing
import UserSettings

@Suite("settings")
struct SettingsTests {
  private let folder: TemporaryFolder
  private var home: String { "\(folder.path)/home" }
  private var system: String { "\(folder.path)/etc" }

  init() throws {
    folder = try TemporaryFolder()
  }

  private func settings(
    _ flags: Settings.Flags = Settings.Flags(), _ environment: [String: String] = [:]
  ) throws -> Settings {
    let environment = environment.merging(["HOME": home]) { given, _ in given }
    return try Settings(
      flags: flags, environment: environment,
      folders: ConfigurationFolders(environment: environment, system: system))
  }

  @Test("nobody decided: the defaults")
  func defaults() throws {
    let settings = try settings()
    #expect(settings.vehicle == Setting(nil, .standard))
    #expect(settings.radio == Setting("hci0", .standard))
    #expect(settings.nfc == Setting(nil, .standard))
    #expect(settings.timeout == Setting(10, .standard))
    #expect(settings.timeout.origin.description == "default")
  }

  @Test("flag before environment before the user's file before the system's", arguments: 0..<16)
  func precedence(places: Int) throws {
    let (hasFlag, hasVariable) = (places & 8 != 0, places & 4 != 0)
    if places & 2 != 0 {
      try folder.write("home/.config/stepctl/config.toml", "\nvehicle = \"of-user\"\nradio = \"hci2\"\ntimeout = 2\n")
    }
    if places & 1 != 0 {
      try folder.write("etc/config.toml", "timeout = 1.5\nradio = \"hci1\"\nvehicle = \"of-system\"\n")
    }
    let settings = try settings(
      hasFlag ? Settings.Flags(vehicle: "of-flag", radio: "hci4", timeout: "4") : Settings.Flags(),
      hasVariable ? ["STEPCTL_VEHICLE": "of-variable", "STEPCTL_RADIO": "hci3", "STEPCTL_TIMEOUT": "3"] : [:])

    let (vehicle, radio, timeout, origins): (String?, String, Double, [String]) =
      switch places {
      case 8...: ("of-flag", "hci4", 4, ["flag --vehicle", "flag --radio", "flag --timeout"])
      case 4...: ("of-variable", "hci3", 3, ["STEPCTL_VEHICLE", "STEPCTL_RADIO", "STEPCTL_TIMEOUT"])
      case 2...: ("of-user", "hci2", 2, (2...4).map { "~/.config/stepctl/config.toml:\($0)" })
      case 1: ("of-system", "hci1", 1.5, [3, 2, 1].map { "\(system)/config.toml:\($0)" })
      default: (nil, "hci0", 10, ["default", "default", "default"])
      }
    #expect(settings.vehicle.value == vehicle)
    #expect(settings.radio.value == radio)
    #expect(settings.timeout.value == timeout)
    #expect(
      [settings.vehicle.origin, settings.radio.origin, settings.timeout.origin].map(\.description) == origins)
  }

  @Test("the NFC reader is named by the flag, the variable or a file, in this order")
  func reader() throws {
    let path = try folder.write("home/.config/stepctl/config.toml", "nfc = \"pn532_uart:/dev/ttyS0\"\n")
    #expect(try settings().nfc == Setting("pn532_uart:/dev/ttyS0", .file("~/.config/stepctl/config.toml", line: 1)))
    let variable = ["STEPCTL_NFC": "pn532_i2c:/dev/i2c-1"]
    #expect(
      try settings(Settings.Flags(), variable).nfc == Setting("pn532_i2c:/dev/i2c-1", .variable("STEPCTL_NFC")))
    #expect(
      try settings(Settings.Flags(nfc: "pn53x_usb"), variable).nfc == Setting("pn53x_usb", .flag("--nfc")), "\(path)")
  }

  @Test("each setting has its own origin")
  func mixed() throws {
    try folder.write("home/.config/stepctl/config.toml", "radio = \"hci2\"\n")
    let settings = try settings(Settings.Flags(timeout: "7"), ["STEPCTL_VEHICLE": "van", "STEPCTL_RADIO": ""])
    #expect(settings.vehicle == Setting("van", .variable("STEPCTL_VEHICLE")))
    #expect(settings.radio == Setting("hci2", .file("~/.config/stepctl/config.toml", line: 1)))
    #expect(settings.timeout == Setting(7, .flag("--timeout")))
  }

  @Test("the user's folder is XDG_CONFIG_HOME's, when that is absolute")
  func userFolder() {
    func user(_ environment: [String: String]) -> String? { ConfigurationFolders(environment: environment).user }
    #expect(user(["XDG_CONFIG_HOME": "/x", "HOME": "/home/a"]) == "/x/stepctl")
    #expect(user(["XDG_CONFIG_HOME": "x", "HOME": "/home/a"]) == "/home/a/.config/stepctl")
    #expect(user(["XDG_CONFIG_HOME": "", "HOME": "/home/a"]) == "/home/a/.config/stepctl")
    #expect(user([:]) == nil)
    #expect(ConfigurationFolders(environment: [:]).configFiles == ["/etc/stepctl/config.toml"])
  }

  @Test("a time is read in the same way wherever it is written")
  func times() throws {
    for (text, seconds) in [("3", 3), ("0.5", 0.5), ("10s", 10), ("500ms", 0.5), ("2m", 120), ("1h", 3600)] {
      #expect(try settings(Settings.Flags(timeout: text)).timeout.value == seconds)
      #expect(try settings(Settings.Flags(), ["STEPCTL_TIMEOUT": text]).timeout.value == seconds)
      try folder.write("home/.config/stepctl/config.toml", "timeout = \"\(text)\"\n")
      #expect(try settings().timeout == Setting(seconds, .file("~/.config/stepctl/config.toml", line: 1)))
    }
  }

  @Test("a wrong value names the flag, the variable or the line")
  func wrongValues() throws {
    func complaint(_ flags: Settings.Flags = Settings.Flags(), _ environment: [String: String] = [:]) -> String? {
      FileFormatsTests.complaint { _ = try settings(flags, environment) }
    }
    let expected = "expected 0.1 s to 1 h, as 10, 10s or 2m, found"
    #expect(complaint(Settings.Flags(timeout: "0")) == "--timeout: \(expected) \"0\"")
    #expect(complaint(Settings.Flags(timeout: "1d")) == "--timeout: \(expected) \"1d\"", "as it was typed")
    #expect(complaint(Settings.Flags(), ["STEPCTL_TIMEOUT": "soon"]) == "STEPCTL_TIMEOUT: \(expected) \"soon\"")
    #expect(complaint(Settings.Flags(), ["STEPCTL_TIMEOUT": "nan"]) == "STEPCTL_TIMEOUT: \(expected) \"nan\"")
    #expect(
      complaint(Settings.Flags(vehicle: ""))
        == "--vehicle: expected non-empty text without control characters, found \"\"")
    #expect(
      complaint(Settings.Flags(), ["STEPCTL_RADIO": "h4:\n"])
        == "STEPCTL_RADIO: expected non-empty text without control characters, found \"h4:\\n\"")
    let path = try folder.write("home/.config/stepctl/config.toml", "radio = \"hci0\"\ntimeout = \"2h\"\n")
    #expect(complaint() == "\(path):2: timeout: \(expected) \"2h\"")
    try folder.write("home/.config/stepctl/config.toml", "\nverbose = true\n")
    #expect(complaint() == "\(path):2: verbose: unknown key, expected vehicle, radio, nfc, via or timeout")
    try folder.write("home/.config/stepctl/config.toml", "")
    try folder.write("etc/config.toml", "vehicles = \"van\"\n")
    #expect(complaint() == "\(system)/config.toml:1: vehicles: unknown key, did you mean \"vehicle\"?")
  }
}
