import FileFormats
import Glibc
import SystemIO
import TestSupport
import Testing
import UserSettings

@Suite("finding the vehicle file")
struct VehicleLookupTests {
  private let folder: TemporaryFolder
  private let mine: String
  private let systems: String

  init() throws {
    folder = try TemporaryFolder()
    mine = "\(folder.path)/home/.config/stepctl/vehicles"
    systems = "\(folder.path)/etc/vehicles"
  }

  private func find(_ vehicle: String? = nil) throws -> String {
    let environment = ["HOME": "\(folder.path)/home"]
    return try Settings(
      flags: Settings.Flags(vehicle: vehicle), environment: environment,
      folders: ConfigurationFolders(environment: environment, system: "\(folder.path)/etc")
    ).vehicleFile()
  }

  @Test("a path is taken as it is, there or not", arguments: ["van.toml", "./van", "cars/van", "/srv/van.toml"])
  func paths(path: String) throws {
    #expect(try find(path) == path)
  }

  @Test("a name is looked for in the user's folder, then in the system's")
  func names() throws {
    try folder.write("etc/vehicles/van.toml")
    #expect(try find("van") == "\(systems)/van.toml")
    try folder.write("home/.config/stepctl/vehicles/van.toml")
    #expect(try find("van") == "\(mine)/van.toml")
    // Whatever order the files are in.
    try folder.write("home/.config/stepctl/vehicles/van/vehicle.toml")
    #expect(try find("van") == "\(mine)/van/vehicle.toml")
  }

  @Test(
    "an existing file needs no suffix, and an existing folder is none",
    .enabled(if: Files.exists("Package.swift"), "a bare name is seen from the working folder, the package's"))
  func existing() throws {
    #expect(try find("Package.swift") == "Package.swift")
    #expect(throws: ConfigurationError.self) { try find("Tests") }
  }

  @Test("a folder stands for the vehicle file in it, unless a vehicle has its name")
  func inFolder() throws {
    let car = "\(folder.path)/car"
    for given in [car, "\(car)/"] { #expect(try find(given) == given) }
    try folder.write("car/vehicle.toml")
    for given in [car, "\(car)/"] { #expect(try find(given) == "\(car)/vehicle.toml") }
  }

  @Test("an unknown name says where it was looked for, and what was probably meant")
  func unknown() throws {
    #expect(
      throws: ConfigurationError(
        "--vehicle", "no vehicle \"vam\": there is no ~/.config/stepctl/vehicles/vam.toml or \(systems)/vam.toml",
        hint: "`stepctl config list` lists those you know", kind: .missing)
    ) { try find("vam") }
    #expect(
      throws: ConfigurationError(
        "--vehicle", "no vehicle \"left\": there is no ~/.config/stepctl/vehicles/left.toml or \(systems)/left.toml",
        hint: "left is a side: leave it out, or name the vehicle", kind: .missing)
    ) { try find("left") }
    try folder.write("etc/vehicles/van.toml")
    #expect(
      throws: ConfigurationError(
        "--vehicle",
        "no vehicle \"vam\": there is no ~/.config/stepctl/vehicles/vam.toml or \(systems)/vam.toml",
        hint: "did you mean \"van\"?", kind: .missing)
    ) { try find("vam") }
  }

  @Test("without a name the only one is meant, and several have to be told apart")
  func implied() throws {
    #expect(
      throws: ConfigurationError(
        "vehicle", "not given, and none is in ~/.config/stepctl/vehicles or \(systems)",
        hint: "import what your operator gave you with `stepctl config import`, or use --vehicle", kind: .missing)
    ) { try find() }
    try folder.write("etc/vehicles/van.toml")
    try folder.write("etc/vehicles/README")
    try folder.write("etc/vehicles/.van.toml.swp.toml")
    #expect(try find() == "\(systems)/van.toml")
    try folder.write("home/.config/stepctl/vehicles/van.toml")
    #expect(try find() == "\(mine)/van.toml")
    try folder.write("home/.config/stepctl/vehicles/bus.toml")
    #expect(
      throws: ConfigurationError("vehicle", "not given, and there are several", hint: "use --vehicle bus or van")
    ) { try find() }
  }

  @Test(
    "in config.toml a path leads from that file, and ~ is the home",
    arguments: [
      ("../../van.toml", "home/van.toml"), ("~/cars/van.toml", "home/cars/van.toml"),
      ("vehicles/van.toml", "home/.config/stepctl/vehicles/van.toml"),
      ("van", "home/.config/stepctl/vehicles/van.toml"),
    ])
  func fromFile(text: String, path: String) throws {
    try folder.write("home/.config/stepctl/config.toml", "vehicle = \"\(text)\"\n")
    try folder.write("home/.config/stepctl/vehicles/van.toml")
    #expect(try find() == "\(folder.path)/\(path)")
  }

  @Test("an unknown name in config.toml names its line")
  func unknownInFile() throws {
    try folder.write("home/.config/stepctl/config.toml", "\nvehicle = \"van\"\n")
    #expect(
      complaint { _ = try find() }
        == "~/.config/stepctl/config.toml:2: no vehicle \"van\": there is no ~/.config/stepctl/vehicles/van.toml or "
        + "\(systems)/van.toml")
  }
}
