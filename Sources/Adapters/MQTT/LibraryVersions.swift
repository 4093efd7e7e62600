import CMosquitto

/// The loaded libraries that make connections: `libmosquitto 2.0.11`, `OpenSSL 3.0.17 1 Jul 2025`
package enum LibraryVersions {
  package static var all: [String] {
    var (major, minor, revision): (Int32, Int32, Int32) = (0, 0, 0)
    mosquitto_lib_version(&major, &minor, &revision)
    return ["libmosquitto \(major).\(minor).\(revision)", String(cString: OpenSSL_version(OPENSSL_VERSION))]
  }
}
