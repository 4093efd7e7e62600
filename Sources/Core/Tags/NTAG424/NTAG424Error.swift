package import Domain
import Encoding

/// Why an NTAG 424 DNA did not do what it was told.
package enum NTAG424Error: Failure, Hashable, Sendable {
  /// The tag refused a command with a status (NT4H2421Gx 10.3: the second byte after 91h).
  case refused(String, status: UInt8)
  /// The key is not the one that was taken for it.
  case wrongKey(UInt8)
  /// The answer is not the tag's: it does not have the right form, or its MAC is not right.
  case notGenuine

  package var exitStatus: ExitStatus { .badData }

  package var description: String {
    switch self {
    case .refused(let command, let status):
      "the tag refused \(command): status 91\(hexadecimal([status]))"
    case .wrongKey(let number): "key \(number) of the tag is another one: it was set up before"
    case .notGenuine: "the tag's answer does not prove that it is the tag's"
    }
  }
}
