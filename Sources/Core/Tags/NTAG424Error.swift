package import Domain
import Encoding

/// Why an NTAG 424 DNA did not do what it should.
package enum NTAG424Error: Failure, Hashable, Sendable {
  /// The tag refused a command with a status (NT4H2421Gx 10.3: the byte after 91h).
  case refused(String, status: UInt8)
  /// The tag has another key with this number.
  case wrongKey(UInt8)
  /// The answer is not from a genuine tag: its form or its MAC is wrong.
  case notGenuine

  package var exitStatus: ExitStatus { .badData }

  package var description: String {
    switch self {
    case .refused(let command, let status):
      "the tag refused \(command): status 91\(hexadecimal([status]))"
    case .wrongKey(let number): "key \(number) of the tag is not the expected one: the tag was set up before"
    case .notGenuine: "the answer does not prove that it comes from the tag"
    }
  }
}
