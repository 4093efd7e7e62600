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
    try Files.edit(path) { try VehicleFile.adding(tag: tag, to: step, in: $0, path: path) }
  }
}
