package import Glibc
package import SystemIO

extension Files {
  /// Writes a result to the path that a user typed. A new or a regular file gets `mode`; behind a link, the file keeps
  /// its own. A pipe or a device, such as `/dev/null`, is written into: root could replace it by a file.
  package static func deliver(_ bytes: [UInt8], to path: String, mode: mode_t) throws(SystemError) {
    var status = stat()
    if stat(path, &status) == 0, status.st_mode & S_IFMT != S_IFREG {
      try Descriptor.open(path, O_WRONLY | O_NOCTTY).write(bytes, path)
    } else if target(ofLink: path) != nil, exists(path) {
      try rewrite(path, with: bytes)
    } else {
      try replace(path, with: bytes, mode: mode)
    }
  }
}
