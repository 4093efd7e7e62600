import Glibc
package import Domain
package import StepController
import Encoding
import SystemIO

/// A servo of paper: appends each motion to a file as a JSON object a line, when it begins.
package struct SimulatedServo: ServoDriver {
  private let log: String

  /// - Parameter log: the file, created at the first motion.
  package init(log: String) { self.log = log }

  package mutating func begin(_ step: StepID, from: Position, to: Position) throws(ServoError) {
    let line: JSON = [
      "time_s": .rounded(Double(WallClock.microseconds) / 1e6, places: 3), "step": .string(step.description),
      "from": .string(from.rawValue), "to": .string(to.rawValue),
    ]
    do throws(SystemError) {
      let file = try Descriptor.open(log, O_WRONLY | O_APPEND | O_CREAT, mode: 0o644)
      try file.write(line.bytes + [0x0A], log)
    } catch {
      throw .failed(error.description)
    }
  }

  package mutating func move(_ step: StepID, to extension: Double) throws(ServoError) {}

  package mutating func release(_ step: StepID) {}
}
