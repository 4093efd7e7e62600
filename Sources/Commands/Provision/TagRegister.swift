import Configuration
import Domain
import SystemIO

/// The list of a step's tags in the vehicle file.
struct TagRegister {
  let path: String
  let step: StepID

  /// Finds out, before anything is written that may be for ever, whether a tag can be added.
  ///
  /// - Throws: `ConfigurationError`, which says why not.
  func check(_ tag: TagUID) throws { _ = try adding(tag, to: Files.read(path)) }

  /// Adds a tag, if it is not there.
  ///
  /// - Returns: whether the file has changed.
  func add(_ tag: TagUID) throws -> Bool {
    try Files.edit(path) { try adding(tag, to: $0) }
  }

  private func adding(_ tag: TagUID, to text: [UInt8]) throws(ConfigurationError) -> [UInt8] {
    try VehicleFile.adding(tag: tag, to: step, in: text, path: path)
  }
}
