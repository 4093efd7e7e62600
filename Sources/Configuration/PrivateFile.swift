import SystemIO

/// A file with a private key.
package enum PrivateFile {
  /// Throws when the file is not there or when anyone but its owner may read it.
  package static func check(_ path: String) throws(ConfigurationError) {
    let isExposed: Bool
    do throws(SystemError) {
      isExposed = try Files.isReadableByOthers(path)
    } catch {
      throw ConfigurationError(path, error)
    }
    guard !isExposed else {
      throw ConfigurationError(path, "can be read by others: chmod 600 \(path)", kind: .permission)
    }
  }
}
