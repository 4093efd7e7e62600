import Foundation
import TestSupport
import Testing

@Suite("Manual pages of the file formats") struct FileFormatTests {
  static let pages = ["stepctl-config.5", "stepctl-vehicle.5", "stepd.toml.5"]

  /// Where each table of keys is documented: pages, and the heading there.
  static let places: [String: [(page: String, heading: String)]] = [
    "Settings.Key": [("stepctl-config.5", "")],
    "VehicleFile.Key": [("stepctl-vehicle.5", "")],
    "VehicleFile.StepKey": [("stepctl-vehicle.5", "[[steps]]")],
    "VehicleFile.BrokerKey": [("stepctl-vehicle.5", "[broker]"), ("stepd.toml.5", "[broker]")],
    "VehicleFile.ControllerKey": [("stepctl-vehicle.5", "[controller]")],
    "VehicleFile.RiderKey": [("stepctl-vehicle.5", "[rider]")],
    "VehicleFile.PlaceKey": [("stepctl-vehicle.5", "[place]")],
    "ControllerFile.Key": [("stepd.toml.5", "")],
    "ControllerFile.KeyFilesKey": [("stepd.toml.5", "[keys]")],
    "ControllerFile.PolicyKey": [("stepd.toml.5", "[policy]")],
    "ControllerFile.BeaconKey": [("stepd.toml.5", "[beacon]")],
    "ControllerFile.BeaconStepKey": [("stepd.toml.5", "[beacon.steps.ID]")],
    "ControllerFile.EarsKey": [("stepd.toml.5", "[ears]")],
    "ControllerFile.EarKey": [("stepd.toml.5", "[ears.steps.ID]")],
    "ControllerFile.LinkKey": [("stepd.toml.5", "[link]")],
    "ControllerFile.TagsKey": [("stepd.toml.5", "[tags]")],
    "ControllerFile.ServoKey": [("stepd.toml.5", "[servo]")],
    "ControllerFile.ServoStepKey": [("stepd.toml.5", "[servo.steps.ID]")],
    "ControllerFile.InputKey": [("stepd.toml.5", "Inputs")],
    "ControllerFile.InputsKey": [("stepd.toml.5", "[inputs]")],
    "ControllerFile.StepInputsKey": [("stepd.toml.5", "[inputs.steps.ID]")],
    "ControllerFile.InterlockKey": [("stepd.toml.5", "[interlock]")],
    "ControllerFile.GuardKey": [("stepd.toml.5", "[guard]")],
    "ControllerFile.GuardStepKey": [("stepd.toml.5", "[guard.steps.ID]")],
    "ControllerFile.WatchdogKey": [("stepd.toml.5", "[watchdog]")],
    "ControllerFile.MetricsKey": [("stepd.toml.5", "[metrics]")],
    "ControllerFile.PlaceKey": [("stepd.toml.5", "[place]")],
  ]

  @Test("the keys that a page documents are those that the program reads")
  func keys() throws {
    let enums = try KeyEnum.all()
    #expect(Set(enums.map(\.name)) == Set(Self.places.keys))
    for keys in enums {
      for (file, heading) in Self.places[keys.name] ?? [] {
        let page = try ManualPage(file)
        #expect(Self.keys(in: page, below: heading) == keys.keys, "\(file) \(heading): \(keys.name)")
      }
    }
  }

  @Test("every heading of a page stands for a table that the program reads")
  func headings() throws {
    for file in Self.pages {
      let known = Self.places.values.joined().filter { $0.page == file && !$0.heading.isEmpty }.map(\.heading)
      #expect(try ManualPage(file).subsections(of: "DESCRIPTION") == Set(known), "\(file)")
    }
  }

  @Test("the program reads the examples of settings and vehicles")
  func readsExamples() throws {
    let folder = try TemporaryFolder()
    let vehicles = try ManualPage("stepctl-vehicle.5").examples
    #expect(vehicles.count == 2)
    for example in vehicles {
      let file = try folder.write("vehicle.toml", example)
      let outcome = try Subprocess.run(product: "stepctl", ["config", "show", "--vehicle", file])
      #expect(outcome.status == 0, "\(outcome.errors)")
    }
    let settings = try ManualPage("stepctl-config.5").examples
    #expect(settings.count == 1)
    for example in settings {
      _ = try folder.write("home/.config/stepctl/config.toml", example)
      // The vehicle that it names is the reader's own.
      _ = try folder.write("home/riders/anna/vehicle.toml", vehicles[0])
      let outcome = try Subprocess.run(
        product: "stepctl", ["config", "show"], environment: ["HOME": "\(folder.path)/home"])
      #expect(outcome.status == 0, "\(outcome.errors)")
      #expect(outcome.output.contains("riders/anna/vehicle.toml"))
    }
  }

  @Test("the controller reads its example in a vehicle's folder")
  func readsControllerExample() throws {
    let folder = try TemporaryFolder()
    let car = "\(folder.path)/car"
    let provision = try Subprocess.run(product: "stepctl", ["provision", "vehicle", car])
    try #require(provision.status == 0, "\(provision.errors)")
    let examples = try ManualPage("stepd.toml.5").examples
    #expect(examples.count == 1)
    // --check sees whether chips and inputs are there, and few machines have them.
    _ = try folder.write("car/pwm/pwmchip0/export", "")
    _ = try folder.write("car/fe20c000.pwm/uevent", "")
    try FileManager.default.createSymbolicLink(
      atPath: "\(car)/pwm/pwmchip0/device", withDestinationPath: "../../fe20c000.pwm")
    let replacements = [
      ("driver = \"pwm\"\n", "driver = \"pwm\"\nroot = \"pwm\"\n"), ("gpio:pinctrl-bcm2711:", "file:line"),
      ("file:/run/vehicle/", "file:"),
    ]
    for name in ["tls/feed.pem", "tls/feed.key"] { _ = try folder.write("car/\(name)", "", mode: 0o600) }
    for name in ["line3", "line7", "standing"] { _ = try folder.write("car/\(name)", "1") }
    for example in examples {
      var text = example
      for (part, replacement) in replacements {
        #expect(example.contains(part))
        text.replace(part, with: replacement)
      }
      let file = try folder.write("car/stepd.toml", text)
      let outcome = try Subprocess.run(product: "stepd", ["--config", file, "--check"])
      #expect(outcome.status == 0, "\(outcome.errors)")
    }
  }

  /// The keys that are listed under a heading, and the tables that have headings of their own below it.
  private static func keys(in page: ManualPage, below heading: String) -> Set<String> {
    let listed = page.items("DESCRIPTION", heading).filter { $0.tag.first == "Cm" }
      .compactMap { $0.tag.dropFirst().first }
    let own = path(of: heading)
    let tables = page.subsections(of: "DESCRIPTION").filter { $0.hasPrefix("[") }.map(path(of:))
      .filter { $0.count > own.count && $0.starts(with: own) && (!own.isEmpty || $0.count == 1) }
      .map { $0[own.count] }
    return Set(listed).union(tables)
  }

  /// `servo`, `steps`, `ID` of `[servo.steps.ID]`.
  private static func path(of heading: String) -> [String] {
    heading.filter { !"[]".contains($0) }.split(separator: ".").map(String.init)
  }
}
