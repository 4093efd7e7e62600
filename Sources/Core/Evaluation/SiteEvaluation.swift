package import Domain
import Ranging

/// How well a vehicle's steps are found at a site, from captures of known positions.
package struct SiteEvaluation: Sendable {
  package let vehicle: Vehicle
  package let positions: [PositionEvaluation]
  package let zones: ConfusionMatrix
  package let sides: ConfusionMatrix
  /// Fitted to the positions without a body between; nil if these are too few.
  package let law: DistanceLaw?
  /// How many decibels each position is above the law; nil if nothing was heard.
  package let residuals: [Double?]
  /// What is wrong with each position.
  package let faults: [PositionFault?]

  package init(_ positions: [PositionEvaluation], of vehicle: Vehicle) {
    self.vehicle = vehicle
    self.positions = positions
    var zones = ConfusionMatrix(Zone.allCases.dropLast().map(\.rawValue), undecided: Zone.unknown.rawValue)
    var sides = ConfusionMatrix(Side.allCases.map(\.rawValue), undecided: "undecided")
    for position in positions {
      // `allCases` has every case.
      if let zone = position.zone { zones.add(position.zones, to: Zone.allCases.firstIndex(of: zone)!) }
      sides.add(position.sides, to: Side.allCases.firstIndex(of: position.position.side)!)
    }
    (self.zones, self.sides) = (zones, sides)
    func law(without left: Int? = nil) -> DistanceLaw? {
      DistanceLaw(
        positions.indices.compactMap { index in
          guard index != left, !positions[index].position.hasBody, let level = positions[index].level else {
            return nil
          }
          return (positions[index].position.distance, level)
        })
    }
    let all = law()
    self.law = all
    let residuals = positions.map { position in
      all.flatMap { law in position.level.map { $0 - law.level(at: position.position.distance) } }
    }
    self.residuals = residuals
    // With too few other positions there is no law without this one. Then the law of all positions must do.
    faults = positions.indices.map { positions[$0].fault(law(without: $0) ?? all, residual: residuals[$0]) }
  }

  package var decisions: Int { positions.reduce(0) { $0 + $1.decisions } }

  /// How often the rider was located at a step within reach.
  package var available: Share? {
    located({ $0.position.distance <= PositionEvaluation.reach }, \.located)
  }

  /// How often the rider was located at a step although all steps were far away.
  package var away: Share? {
    located({ $0.position.distance > PositionEvaluation.away }, { $0.located + $0.locatedElsewhere })
  }

  /// The captures in which the rider was ever located at the wrong step.
  package var wrongStep: Share? {
    Share(positions.count { $0.locatedElsewhere > 0 }, of: positions.count, independent: positions.count)
  }

  private func located(
    _ isMeant: (PositionEvaluation) -> Bool, _ count: (PositionEvaluation) -> Int
  ) -> Share? {
    let meant = positions.filter(isMeant)
    return Share(
      meant.reduce(0) { $0 + count($1) }, of: meant.reduce(0) { $0 + $1.decisions }, independent: meant.count)
  }

  /// The loss from a body between, decibels: how far the positions with a body are below the law.
  package var bodyLoss: Double? {
    let residuals = zip(positions, residuals).compactMap { $0.position.hasBody ? $1 : nil }
    return residuals.isEmpty ? nil : -residuals.reduce(0, +) / Double(residuals.count)
  }

  /// A comparison of the surveyor's methods; empty if there are fewer than two.
  package var methods: [(method: String?, positions: Int, residual: Double?, correct: Share?)] {
    var names: [String?] = []
    for position in positions where !names.contains(position.position.method) { names.append(position.position.method) }
    guard names.count > 1 else { return [] }
    return names.map { name in
      let meant = positions.indices.filter { positions[$0].position.method == name }
      let rest = meant.compactMap { residuals[$0] }
      let part = SiteEvaluation(meant.map { positions[$0] }, of: vehicle)
      return (name, meant.count, rest.isEmpty ? nil : rest.reduce(0, +) / Double(rest.count), part.zones.correct())
    }
  }

  /// What is wrong with the whole site: sentences without a full stop.
  package var remarks: [String] {
    guard let law else { return [] }
    if law.exponent <= 0 { return ["the level does not fall with the distance: are the distances in the file right?"] }
    guard Self.movesZones(by: law.level), abs(law.level) > 2 * law.levelError else { return [] }
    let off = Int(abs(law.level).rounded())
    return [
      """
      the beacons are \(off) dB \(law.level < 0 ? "weaker" : "stronger") at 1 m than noted: run `stepctl calibrate`
      """
    ]
  }

  /// Whether levels that are off by these decibels take one of the calibration's distances out of its zone. In free
  /// space 0.3 m is then no longer immediate (from -3.0 dB), or 1 m no longer near (from 4.5 dB). 3 m is the edge of a
  /// zone, where either answer is good.
  package static func movesZones(by decibels: Double) -> Bool {
    CalibrationPosition.Distance.allCases.contains { distance in
      let level = RangingModel.level(at: distance.metres)
      let zone = Locator.clearZone(at: level)
      return zone != .unknown && Locator.clearZone(at: level + decibels) != zone
    }
  }
}
