public import ArgumentParser
import Domain
import Encoding
import Geography
import Operator

/// A vehicle's place, as people type it: `48.7758,9.1829,93.5`.
struct ParkingPlace: ExpressibleByArgument {
  let position: Coordinate
  /// Radians clockwise from north.
  let heading: Double

  init?(argument: String) {
    let numbers = argument.split(separator: ",", omittingEmptySubsequences: false).map { Double($0) }
    guard numbers.count == 3, let latitude = numbers[0], let longitude = numbers[1], let heading = numbers[2],
      (0...360).contains(heading), let position = Coordinate(latitude: latitude, longitude: longitude)
    else { return nil }
    self.position = position
    self.heading = heading * .pi / 180
  }
}

/// Steps as the user types them: `left`, `left,right`, or with explicit ids, `entry=left`. At most one step at each
/// side.
struct StepPlan: ExpressibleByArgument {
  let steps: [Step]

  /// The default: one step on each side. Their ids are valid ids.
  static let leftAndRight = StepPlan(argument: "left,right")!

  init?(argument: String) {
    var steps: [Step] = []
    for (index, part) in argument.split(separator: ",", omittingEmptySubsequences: false).enumerated() {
      let words = part.split(separator: "=", omittingEmptySubsequences: false).map(String.init)
      guard words.count <= 2, let id = StepID(words[0]), let side = Side(rawValue: words[words.count - 1]),
        !steps.contains(where: { $0.id == id || $0.side == side })
      else { return nil }
      steps.append(Step(id: id, side: side, major: UInt16(index + 1)))
    }
    self.steps = steps
  }
}

extension UUID: ExpressibleByArgument {
  package init?(argument: String) { self.init(argument) }
}

extension TopicPrefix: ExpressibleByArgument {
  package init?(argument: String) { self.init(argument) }
}

extension BrokerHost: ExpressibleByArgument {
  package init?(argument: String) { self.init(argument) }
  package var defaultValueDescription: String { description }
}

extension ServoKind: ExpressibleByArgument {}

/// Three groups of four letters and digits, in either case.
struct EnrolmentCode: ExpressibleByArgument {
  let text: String

  init?(argument: String) {
    // Whether people type the hyphens does not matter.
    let code = argument.uppercased().filter { $0 != "-" && $0 != " " }
    guard code.utf8.count == 12, code.utf8.allSatisfy(\.isASCIIAlphanumeric) else { return nil }
    text = "\(code.prefix(4))-\(code.dropFirst(4).prefix(4))-\(code.suffix(4))"
  }
}
