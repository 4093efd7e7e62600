import ArgumentParser
import CommandParts
import Domain
import Encoding
import Operator
import SystemIO
import Terminal
import UserSettings

/// The folder of a vehicle that was made before.
struct ProvisionedOptions: ParsableArguments {
  @Argument(help: ArgumentHelp("The vehicle's folder, or its name.", valueName: "dir"), completion: .directory)
  var folder: String?

  @OptionGroup var vehicle: VehicleOptions

  /// What was typed. `validate` has checked that something was.
  private var typed: String { folder ?? vehicle.vehicle ?? "" }

  func validate() throws {
    guard folder == nil || vehicle.vehicle == nil else {
      throw ValidationError("The folder and --vehicle exclude each other.")
    }
    guard folder != nil || vehicle.vehicle != nil else { throw ValidationError("Give the vehicle's folder.") }
    guard !typed.isEmpty else { throw ValidationError("The vehicle's folder has no name.") }
  }

  /// The vehicle's folder, given as such, by its file or by its name, which may be that of a known vehicle.
  func place(in context: Context) throws -> VehicleFolder {
    if let folder = try VehicleFolder.named(typed, of: "vehicle") { return folder }
    if let path = try context.folders.vehicle(called: typed) { return VehicleFolder(Files.parent(of: path)) }
    return VehicleFolder(typed)
  }
}

extension VehicleFolder {
  /// A folder, the folder of a vehicle's file, or the folder of the vehicle that has this name, here or in an
  /// operator's folder here; nil if there is none.
  ///
  /// - Parameter whose: whose folder is asked for.
  static func named(_ typed: String, of whose: String) throws -> VehicleFolder? {
    if Files.isFolder(typed) { return VehicleFolder(typed) }
    if Files.exists(typed) {
      guard Files.name(of: typed) == "vehicle.toml" else {
        throw CommandFailure(.usage, "give the \(whose)'s folder: \(typed) is a file")
      }
      return VehicleFolder(Files.parent(of: typed))
    }
    if let path = try ConfigurationFolders.vehicle(called: typed, in: ".") {
      return VehicleFolder(Files.parent(of: path))
    }
    for folder in ((try? Files.names(in: ".")) ?? []).sorted() {
      guard let path = try ConfigurationFolders.vehicle(called: typed, in: "\(folder)/vehicles") else { continue }
      return VehicleFolder(Files.parent(of: path))
    }
    return nil
  }
}

struct ProvisionRenew: ContextCommand {
  static let configuration = CommandConfiguration(
    commandName: "renew", abstract: "Renew the certificates of a vehicle's broker and controller.",
    usage: "stepctl provision renew <options> <dir>")

  @OptionGroup var vehicle: ProvisionedOptions
  @OptionGroup var output: OutputOptions

  func run(in context: Context) throws {
    let console = output.console(context)
    let end = try vehicle.place(in: context).renewCertificates(now: context.seconds)
    try console.isJSON
      ? console.result(["certificates_end": .integer(end)])
      : console.result("the certificates of broker and controller end \(dateAndTime(end)); restart both to use them")
  }
}
