package import Domain

/// An input of the vehicle.
///
/// One rule holds for all of them: *active is the state in which motion is allowed, and a cut wire reads inactive*. So a
/// fault of the wire is on the safe side.
package enum SensorID: Hashable, Sendable {
  /// Nothing is in the step's way.
  case clear(StepID)
  /// The step is at its open end.
  case endOpen(StepID)
  /// The step is at its closed end.
  case endClosed(StepID)
  /// The vehicle stands still.
  case standing
  /// Motion is enabled; a stop button opens it.
  case enable
}

/// What an input reads now.
package struct SensorReport: Sendable, Equatable {
  package let sensor: SensorID
  /// Nil when the input is lost: it cannot be read.
  package let isActive: Bool?

  package init(_ sensor: SensorID, isActive: Bool?) {
    self.sensor = sensor
    self.isActive = isActive
  }
}

/// Where an input comes from.
package enum InputSource: Sendable, Equatable {
  /// A line of a GPIO character device, such as line 3 of `/dev/gpiochip0`.
  case gpio(chip: String, line: Int)
  /// A file that holds `0` or `1` and is written by another program.
  case file(String)
}

package struct InputWiring: Sendable, Equatable {
  package var source: InputSource
  package var isActiveLow: Bool
  /// For how long an input must be active until that counts, milliseconds. Inactive counts at once.
  package var debounce: Int64

  package init(
    _ source: InputSource, isActiveLow: Bool = false, debounce: Int64 = Self.standardDebounce
  ) {
    self.source = source
    self.isActiveLow = isActiveLow
    self.debounce = debounce
  }

  package static let standardDebounce: Int64 = 20
}

/// What a moving vehicle means for its steps.
package struct Interlock: Sendable, Equatable {
  /// What becomes of a step that is out when the vehicle moves.
  package enum OnMoving: String, Sendable, CaseIterable {
    /// It is told.
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
