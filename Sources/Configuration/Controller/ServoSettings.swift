package import Domain

/// What moves the steps, and how long that may take.
package struct ServoSettings: Equatable, Sendable {
  package enum Driver: Equatable, Sendable {
    /// No hardware: movements are appended to the file at `log`.
    case simulated(log: String)
    case pwm(PWMSettings)
  }

  package var driver: Driver
  /// How long a step takes from one end to the other, seconds.
  package var travel: Double
  /// After how long a motion counts as failed, seconds; more than `travel`.
  package var limit: Double
  /// Where the installer left the steps, `open` or `close`: what holds while there is no journal.
  package var installed: Position

  package init(driver: Driver, travel: Double = 1.5, limit: Double = 5, installed: Position = .close) {
    self.driver = driver
    self.travel = travel
    self.limit = limit
    self.installed = installed
  }

  package static let standardLog = "servo.jsonl"

  enum Key: String, TOMLKey {
    case driver, log, root, steps, installed
    case travel = "travel_s"
    case limit = "limit_s"
    case frequency = "frequency_hz"
  }

  private enum DriverName: String, CaseIterable {
    case simulated, pwm
  }

  /// What belongs to the driver that is not chosen is read too: a mistake shows before the day it is chosen.
  init(_ table: TOMLTable<Key>) throws(ConfigurationError) {
    let name = try table.required(.driver, .word(DriverName.allCases))
    let log = try table.optional(.log, table.path) ?? table.document.resolve(Self.standardLog)
    let pwm = try PWMSettings(table)
    self.init(driver: name == .simulated ? .simulated(log: log) : .pwm(pwm))
    travel = try table.optional(.travel, .number(in: 0.2...20)) ?? travel
    limit = try table.optional(.limit, .number(in: 0.2...60)) ?? limit
    installed = try table.optional(.installed, .word([.open, .close])) ?? installed
    guard limit > travel else {
      throw table.error(
        .limit, "\(TOMLText.number(limit)) is not more than travel_s, \(TOMLText.number(travel))")
    }
  }
}
