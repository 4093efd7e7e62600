package import Domain
import StepProtocol

/// Steps whose iBeacons send another minor in each period.
package struct BeaconSettings: Equatable, Sendable {
  /// Where a step's minor comes from, and what sends it.
  package struct Source: Equatable, Sendable {
    /// The path of the step's secret, a symmetric JWK; nobody but its owner may read it.
    package var secret: String
    /// The radio that the controller sends with, as `hci0`; nil when a device of its own sends, which has the secret
    /// and a clock.
    package var adapter: String?

    package init(secret: String, adapter: String? = nil) {
      self.secret = secret
      self.adapter = adapter
    }
  }

  /// How long a minor lasts, seconds.
  package var period: Int
  package var steps: [StepID: Source]

  package init(period: Int = RotatingMinor.standardPeriod, steps: [StepID: Source] = [:]) {
    self.period = period
    self.steps = steps
  }

  enum Key: String, TOMLKey {
    case period = "period_s"
    case steps
  }

  private enum SourceKey: String, TOMLKey {
    case secret, adapter
  }

  init(_ table: TOMLTable<Key>) throws(ConfigurationError) {
    self.init()
    period = try table.optional(.period, .integer(in: RotatingMinor.periods)) ?? period
    for (name, table) in try table.namedTables(.steps, SourceKey.self) {
      let id = try table.stepID(name)
      steps[id] = Source(
        secret: try table.required(.secret, table.path), adapter: try table.optional(.adapter, .text))
    }
  }
}
