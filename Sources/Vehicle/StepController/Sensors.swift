package import Domain
import StepProtocol

/// An input of the vehicle.
///
/// One rule holds for all inputs: *active is the state in which motion is allowed, and a cut wire reads inactive*. So a
/// fault of the wire is on the safe side.
package enum SensorID: Hashable, Sendable, CustomStringConvertible {
  /// Nothing is in the step's way.
  case clear(StepID)
  /// The step is at its open end.
  case endOpen(StepID)
  /// The step is at its closed end.
  case endClosed(StepID)
  /// The vehicle stands still.
  case standing
  /// Motion is enabled; pressing a stop button makes it inactive.
  case enable

  /// Nil for an input of the whole vehicle.
  package var step: StepID? {
    switch self {
    case .clear(let step), .endOpen(let step), .endClosed(let step): step
    case .standing, .enable: nil
    }
  }

  static func end(_ end: Command.Move.Target, of step: StepID) -> SensorID {
    end == .open ? .endOpen(step) : .endClosed(step)
  }

  /// As in `stepd.toml`, under `inputs`, `inputs.steps` and `interlock`.
  package var description: String {
    switch self {
    case .clear(let step): "\(step).clear"
    case .endOpen(let step): "\(step).end_open"
    case .endClosed(let step): "\(step).end_closed"
    case .standing: "standing"
    case .enable: "enable"
    }
  }
}

/// The present reading of an input.
package struct SensorReport: Sendable, Equatable {
  package let sensor: SensorID
  /// Nil if the input is lost: it cannot be read.
  package let isActive: Bool?

  package init(_ sensor: SensorID, isActive: Bool?) {
    self.sensor = sensor
    self.isActive = isActive
  }
}

/// Where an input comes from.
package enum InputSource: Sendable, Equatable {
  /// A line of a GPIO chip, such as line 3 of `pinctrl-rp1`. The chip is the path of its character device, or its
  /// label, which no kernel changes, and which has no slash.
  case gpio(chip: String, line: Int)
  /// A file that contains `0` or `1` and is written by another program.
  case file(String)
  /// The vehicle's speed by an adapter for its diagnosis: active at 0 km/h.
  case speed(OBDAddress)

  /// How long an input of this kind must be active before it counts as active, milliseconds, if nobody says otherwise.
  /// A vehicle that rolls very slowly tells 0 km/h now and then.
  package var standardDebounce: Int64 {
    switch self {
    case .gpio, .file: 20
    case .speed: 1000
    }
  }
}

package struct InputWiring: Sendable, Equatable {
  package var source: InputSource
  package var isActiveLow: Bool
  /// How long an input must be active before it counts as active, milliseconds. Inactive counts at once.
  package var debounce: Int64

  /// - Parameter debounce: nil for the usual one of its source.
  package init(_ source: InputSource, isActiveLow: Bool = false, debounce: Int64? = nil) {
    self.source = source
    self.isActiveLow = isActiveLow
    self.debounce = debounce ?? source.standardDebounce
  }
}

/// What a moving vehicle means for its steps.
package struct Interlock: Sendable, Equatable {
  /// What happens to an extended step when the vehicle moves.
  package enum OnMoving: String, Sendable, CaseIterable {
    /// The controller only reports the fault.
    case warn
    /// The controller closes it.
    case retract
  }

  package var onMoving: OnMoving
  /// Whether a vehicle whose `standing` input is lost counts as moving.
  package var countsLostAsMoving: Bool

  package init(onMoving: OnMoving = .warn, countsLostAsMoving: Bool = true) {
    self.onMoving = onMoving
    self.countsLostAsMoving = countsLostAsMoving
  }
}

/// Which inputs a vehicle has, and what they mean.
package struct Inputs: Sendable, Equatable {
  package var wirings: [SensorID: InputWiring]
  package var interlock: Interlock

  package init(wirings: [SensorID: InputWiring] = [:], interlock: Interlock = Interlock()) {
    self.wirings = wirings
    self.interlock = interlock
  }
}

/// The present readings of the inputs. A wired input that has not been read yet counts as inactive.
struct Readings: Sendable {
  private enum Reading: Sendable { case inactive, active, lost }

  let interlock: Interlock
  /// Contains the wired inputs only.
  private var readings: [SensorID: Reading]

  init(_ inputs: Inputs) {
    interlock = inputs.interlock
    readings = inputs.wirings.mapValues { _ in .inactive }
  }

  /// - Returns: false if the input is not wired.
  mutating func note(_ report: SensorReport) -> Bool {
    guard readings[report.sensor] != nil else { return false }
    readings[report.sensor] = report.isActive.map { $0 ? .active : .inactive } ?? .lost
    return true
  }

  /// Whether the vehicle moves, or may be moving.
  var vehicleMoves: Bool {
    switch readings[.standing] {
    case .inactive?: true
    case .lost?: interlock.countsLostAsMoving
    case .active?, nil: false
    }
  }

  /// Whether the switch at an end sees the step; false if there is no switch.
  func sees(_ step: StepID, at end: Command.Move.Target) -> Bool { readings[.end(end, of: step)] == .active }

  func hasSwitch(at end: Command.Move.Target, of step: StepID) -> Bool { readings[.end(end, of: step)] != nil }

  /// Whether the switch at a motion's end sees the step; it may do so early.
  func sees(_ motion: Motion) -> Bool { motion.obstacle == nil && sees(motion.step, at: motion.target) }

  /// Where a step at rest is. Its switches decide. Without them, it is where it is believed to be, unless a switch
  /// there should see it and does not.
  func position(of step: StepID, believed: Position) -> Position {
    switch (sees(step, at: .open), sees(step, at: .close)) {
    case (true, true): return .unknown
    case (true, false): return .open
    case (false, true): return .close
    case (false, false):
      let isContradicted =
        switch believed {
        case .open: readings[.endOpen(step)] != nil
        case .close: readings[.endClosed(step)] != nil
        case .unknown: false
        }
      return isContradicted ? .unknown : believed
    }
  }

  /// The fault that the inputs show for a step at rest.
  func fault(of step: StepID, at position: Position) -> Fault? {
    if isLost(.clear(step)) || isLost(.enable) || contradiction(of: step) != nil { return .sensor }
    return vehicleMoves && position != .close ? .vehicleMoving : nil
  }

  func blockReason(of motion: Motion) -> BlockReason? {
    // A step that backs off moves through space that was free a moment ago, so only a disabling input stops it.
    motion.obstacle == nil ? blockReason(of: motion.step, extends: motion.extends) : disabling
  }

  /// Why a step may not move.
  ///
  /// - Parameter extends: whether it would go outward.
  func blockReason(of step: StepID, extends: Bool) -> BlockReason? {
    if let disabling { return disabling }
    if let contradiction = contradiction(of: step) {
      return BlockReason(refusal: Refusal(.unavailable), fault: .sensor, contradiction)
    }
    if extends, vehicleMoves {
      let reason = isLost(.standing) ? "it is not known whether the vehicle stands" : "the vehicle moves"
      return BlockReason(refusal: Refusal(.vehicleMoving), fault: .vehicleMoving, reason)
    }
    guard isInactive(.clear(step)) else { return nil }
    if isLost(.clear(step)) { return BlockReason(fault: .sensor, "the clear input is lost") }
    return BlockReason("something is in the way")
  }

  private var disabling: BlockReason? {
    guard isInactive(.enable) else { return nil }
    return isLost(.enable)
      ? BlockReason(refusal: Refusal(.stopped), fault: .sensor, "the enable input is lost")
      : BlockReason(refusal: Refusal(.stopped), fault: .stopped, "the enable input forbids motion")
  }

  private func contradiction(of step: StepID) -> String? {
    if isLost(.endOpen(step)) || isLost(.endClosed(step)) { return "the input of an end is lost" }
    return sees(step, at: .open) && sees(step, at: .close) ? "the step is seen at both ends" : nil
  }

  private func isLost(_ sensor: SensorID) -> Bool { readings[sensor] == .lost }

  private func isInactive(_ sensor: SensorID) -> Bool { readings[sensor].map { $0 != .active } ?? false }
}
