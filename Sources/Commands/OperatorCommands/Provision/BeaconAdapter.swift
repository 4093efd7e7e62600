import ArgumentParser
import Bluetooth
import Domain

/// The radio that sends a step's beacon, as the user types it: `left=hci0`, or `hci0` for every step.
struct BeaconAdapter: ExpressibleByArgument {
  /// Nil for all steps.
  let step: StepID?
  let radio: RadioSpec

  init?(argument: String) {
    // A radio's path may contain an equals sign too. Then the text before it is not a step's id.
    let step = argument.firstIndex(of: "=").flatMap { equals in
      StepID(String(argument[..<equals])).map { ($0, argument[argument.index(after: equals)...]) }
    }
    guard let radio = try? RadioSpec(step.map { String($0.1) } ?? argument), radio.canAdvertise else { return nil }
    self.step = step?.0
    self.radio = radio
  }
}

extension [BeaconAdapter] {
  /// The radio of each step that has one.
  ///
  /// - Throws: `ValidationError` when a step has two radios, or when the vehicle has no such step.
  func adapters(of steps: [StepID]) throws -> [StepID: RadioSpec] {
    var adapters: [StepID: RadioSpec] = [:]
    for beacon in self {
      if let step = beacon.step, !steps.contains(step) {
        throw ValidationError(
          "--beacon: the vehicle has no step \(step), only \(steps.map(\.description).joined(separator: ", ")).")
      }
      for step in beacon.step.map({ [$0] }) ?? steps {
        guard adapters.updateValue(beacon.radio, forKey: step) == nil else {
          throw ValidationError("--beacon: the step \(step) has two radios.")
        }
      }
    }
    return adapters
  }
}
