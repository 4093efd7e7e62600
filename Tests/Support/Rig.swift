import Glibc

/// A kernel with devices that the kernel or a program plays, `run.sh`, and its Bluetooth controller, `beaconctl.c`.
package enum Rig {
  package static let path = "\(Repository.root)/Tests/Rig"
  package static let hasKernel = !isUnwanted && access("\(Repository.root)/.build/rig/linux", X_OK) == 0
  package static let missing =
    isUnwanted ? "STEPCTL_RIG says no: they take minutes" : "there is no kernel to run them in: `make rig` builds it"
  private static let isUnwanted = getenv("STEPCTL_RIG").map { String(cString: $0) == "no" } ?? false
  /// Whether this process runs in it.
  package static let isHere = getenv("STEPCTL_IN_RIG") != nil

  /// Runs tests of this program in a kernel of its own, one after the other: it has one device of each kind.
  ///
  /// - Parameters:
  ///   - filter: which tests, a regular expression.
  ///   - options: of `run.sh`.
  package static func run(_ filter: String, _ options: String) -> (status: Int32, output: String) {
    shell(
      """
      '\(path)/run.sh' --timeout 300 \(options) -- env STEPCTL_IN_RIG=1 '\(CommandLine.arguments[0])' \
        --testing-library swift-testing --no-parallel --filter '\(filter)' 2>&1
      """)
  }
}
