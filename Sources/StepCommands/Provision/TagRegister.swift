import Configuration
import StepDomain
import SystemIO

/// The list of a step's tags in the vehicle file.
struct TagRegister {
  let path: String
  let step: StepID

  /// Adds a tag, if it is not there.
  ///
  /// - Returns: whether the file has changed.
  func add(_ tag: TagUID) throws -> Bool {
    let text = try Files.read(path)
    let changed = try VehicleFile.adding(tag: tag, to: step, in: text, path: path)
    guard changed != text else { return false }
    try Files.rewrite(path, with: changed)
    return true
  }
}
