import CommandParts
import Domain
import Encoding
import Evaluation
import Ranging
import Terminal

/// How well steps are located at a site, and how attempts to open them ended, for people and for programs.
struct EvaluationReport {
  /// Nil if there are no captures.
  let site: SiteEvaluation?
  let openings: [OpeningStatistics]

  // MARK: - For people

  /// - Parameter style: emphasizes a heading on a terminal.
  func lines(_ style: (String, Console.Style) -> String) -> [String] {
    func headed(_ title: String, _ lines: [String]) -> [String] {
      lines.isEmpty ? [] : [style(title, .strong)] + lines + [""]
    }
    var lines: [String] = []
    if let site {
      lines += [
        """
        \(printable(site.vehicle.name)): \(counted(site.positions.count, "capture")), \(site.decisions) decisions, one \
        every 0.5 s
        """, "In brackets: 95 % (Wilson), all decisions of one capture counted as one.", "",
      ]
      lines += headed("Zones: what was true, and what was said", Self.matrix(site.zones) + leftOut(site))
      lines += headed("Sides", Self.matrix(site.sides))
      lines += headed("Permit to move a step (located)", permits(site))
      lines += headed("RSSI over distance", law(site))
      lines += headed("Positions", positions(site))
      lines += headed("Methods of recording", methods(site))
      lines += headed("What is wrong", faults(site))
    }
    lines += headed("Attempts to open", attempts)
    return lines.dropLast()
  }

  private static func matrix(_ matrix: ConfusionMatrix) -> [String] {
    guard !matrix.isEmpty else { return [] }
    let words = matrix.words + [matrix.undecided]
    let widths = words.map { max($0.count, 5) + 1 }
    let head = zip(words, widths).map { $0.aligned(to: $1, right: true) }.joined()
    var lines = ["  \("true".aligned(to: 9))\(head)  \("correct of decided".aligned(to: 19))coverage"]
    for (row, word) in matrix.words.enumerated() where matrix.counts[row].contains(where: { $0 > 0 }) {
      let counts = zip(matrix.counts[row], widths).map { "\($0)".aligned(to: $1, right: true) }.joined()
      lines.append(
        "  \(word.aligned(to: 9))\(counts)  \(percent(matrix.correct(row)).aligned(to: 19))\(percent(matrix.coverage(row)))"
      )
    }
    let gap = String(repeating: " ", count: widths.reduce(0, +))
    lines.append(
      "  \("all".aligned(to: 9))\(gap)  \(percent(matrix.correct()).aligned(to: 19))\(percent(matrix.coverage()))")
    return lines
  }

  private func leftOut(_ site: SiteEvaluation) -> [String] {
    let count = site.positions.count { $0.zone == nil }
    return count == 0
      ? [] : ["  left out: \(counted(count, "capture")) within 10 % of 0.5 m or 3 m, the edges of a zone"]
  }

  private func permits(_ site: SiteEvaluation) -> [String] {
    func row(_ what: String, _ share: Share?, _ unit: String) -> String? {
      share.map { share in
        "  \(what.aligned(to: 23)) \(Self.percent(share).aligned(to: 18)) \(share.part) of \(share.whole)\(unit)"
      }
    }
    func captures(_ share: Share?) -> String { share.map { " in \(counted($0.independent, "capture"))" } ?? "" }
    return [
      row("at the step, to \(Plot.short(PositionEvaluation.reach)) m", site.available, captures(site.available)),
      row("wrongly, beyond \(Plot.short(PositionEvaluation.away)) m", site.away, captures(site.away)),
      row("ever at the wrong step", site.wrongStep, " captures"),
    ].compactMap(\.self)
  }

  private func law(_ site: SiteEvaluation) -> [String] {
    guard let law = site.law else {
      return ["  no law: a fit needs three positions at two distances, without a body between"]
    }
    let powers = Set(site.positions.compactMap(\.measuredPower))
    let power = powers.count == 1 ? powers.first : nil
    let begin = power.map { "\(tenths(Double($0) + law.level)) dBm" } ?? "measured power \(Self.signed(law.level)) dB"
    var lines = [
      "  RSSI = \(begin) - 10 * \(hundredths(law.exponent)) * log10(d / 1 m), sigma \(tenths(law.sigma)) dB",
      "  a least-squares fit to \(law.positions) positions without a body between; ±: standard error",
      "  n \(hundredths(law.exponent)) ± \(hundredths(law.exponentError)); free space has 2",
      "  level at 1 m \(Self.signed(law.level)) ± \(tenths(law.levelError)) dB above the measured power",
    ]
    if let loss = site.bodyLoss {
      let count = site.positions.count { $0.position.hasBody }
      lines.append("  a body between takes \(tenths(loss)) dB (\(counted(count, "position")))")
    }
    return lines
  }

  private func positions(_ site: SiteEvaluation) -> [String] {
    let width = max(8, site.positions.map { Self.name($0.position.capture).columns }.max() ?? 0)
    func line(_ cells: [String]) -> String {
      let widths = [7, 8, 9, 9, 11, 9, 10]
      return "  \(cells[0].aligned(to: width))"
        + zip(cells.dropFirst(), widths).map { $0.aligned(to: $1, right: true) }.joined()
    }
    let head = line(["capture", "side", "true m", "RSSI dBm", "off dB", "zone", "located", "packets/s"])
    return [head]
      + zip(site.positions, site.residuals).map { position, residual in
        let zone = Zone.allCases[position.zones.indices.max { position.zones[$0] < position.zones[$1] }!]
        let located = position.decisions == 0 ? 0 : position.located * 100 / position.decisions
        return line([
          Self.name(position.position.capture), position.position.side.rawValue,
          hundredths(position.position.distance), position.rssi.map(tenths) ?? "-",
          residual.map(Self.signed) ?? "-", zone.column, "\(located) %", tenths(position.rate),
        ])
      }
  }

  private func methods(_ site: SiteEvaluation) -> [String] {
    site.methods.map { method in
      """
        \(Self.name(method.method ?? "-").aligned(to: 15)) \(counted(method.positions, "position").aligned(to: 13)) \
      \((method.residual.map(Self.signed) ?? "-").aligned(to: 5, right: true)) dB off; zone correct \
      \(Self.percent(method.correct))
      """
    }
  }

  private func faults(_ site: SiteEvaluation) -> [String] {
    let faults = zip(site.positions, site.faults).compactMap { position, fault in
      fault.map { "  \(Self.name(position.position.capture)): \($0.sentence)" }
    }
    return site.remarks.map { "  \($0)" } + faults
  }

  private var attempts: [String] {
    openings.flatMap { method in
      func seconds(_ part: Double) -> String { method.times.quantile(part).map { "\(tenths($0)) s" } ?? "-" }
      let line = """
          \(Self.name(of: method.method).aligned(to: 14)) opened \(method.times.count) of \(method.count), \
        \(Self.percent(method.success)); time p50 \(seconds(0.5)), p95 \(seconds(0.95))
        """
      guard !method.failures.isEmpty else { return [line] }
      let failures = method.failures.map { "\($0.count) \($0.code)" }.joined(separator: ", ")
      let after = method.failedAfter.map { ", after \(tenths($0)) s (p50)" } ?? ""
      return [line, "  \("".aligned(to: 14)) failed: \(failures)\(after)"]
    }
  }

  /// A name from the positions file, shortened to the column's width. The end is kept, because it says more than the
  /// folders.
  static func name(_ text: String) -> String {
    let text = printable(text)
    return text.columns <= 15 ? text : "..." + text.suffix(12)
  }

  /// A method in a rider's words.
  static func name(of method: ProofMethod?) -> String {
    switch method {
    case .beacon: "radio"
    case .nfc: "tag"
    case .qr: "code"
    case .heard: "vehicle's ears"
    case nil: "none of several"
    }
  }

  /// `93 % (81 to 98)`
  static func percent(_ share: Share?) -> String {
    guard let share else { return "-" }
    func whole(_ value: Double) -> String { "\(Int((value * 100).rounded()))" }
    return "\(whole(share.value)) % (\(whole(share.interval.lowerBound)) to \(whole(share.interval.upperBound)))"
  }

  private static func signed(_ value: Double) -> String { value < -0.05 ? tenths(value) : "+\(tenths(abs(value)))" }

  // MARK: - For programs

  var json: JSON {
    [
      "vehicle": site.map { .string($0.vehicle.uuid.description) } ?? .null,
      "captures": .integer(Int64(site?.positions.count ?? 0)), "decisions": .integer(Int64(site?.decisions ?? 0)),
      "zones": site.map { Self.json($0.zones) } ?? .null, "sides": site.map { Self.json($0.sides) } ?? .null,
      "permit": site.map { site in
        [
          "available": Self.json(site.available), "away": Self.json(site.away), "wrong_step": Self.json(site.wrongStep),
        ]
      } ?? .null,
      "law": site?.law.map { law in
        [
          "positions": .integer(Int64(law.positions)), "exponent": .rounded(law.exponent, places: 4),
          "exponent_error": .rounded(law.exponentError, places: 4), "level_1m_db": .rounded(law.level, places: 3),
          "level_1m_error_db": .rounded(law.levelError, places: 3), "sigma_db": .rounded(law.sigma, places: 3),
        ]
      } ?? .null,
      "body_loss_db": .rounded(site?.bodyLoss, places: 2),
      "positions": .array(
        site.map { zip(zip($0.positions, $0.residuals), $0.faults).map { Self.json($0.0, $0.1, $1) } } ?? []),
      "methods": .array(
        (site?.methods ?? []).map { method in
          [
            "method": method.method.map { .string($0) } ?? .null, "positions": .integer(Int64(method.positions)),
            "residual_db": .rounded(method.residual, places: 2), "correct": Self.json(method.correct),
          ]
        }),
      "remarks": .array(site?.remarks.map { .string($0) } ?? []),
      "openings": .array(openings.map(Self.json)),
    ]
  }

  private static func json(_ share: Share?) -> JSON {
    guard let share else { return .null }
    return [
      "count": .integer(Int64(share.part)), "of": .integer(Int64(share.whole)),
      "independent": .integer(Int64(share.independent)), "share": .rounded(share.value, places: 4),
      "low": .rounded(share.interval.lowerBound, places: 4), "high": .rounded(share.interval.upperBound, places: 4),
    ]
  }

  private static func json(_ matrix: ConfusionMatrix) -> JSON {
    [
      "columns": .array((matrix.words + [matrix.undecided]).map { .string($0) }),
      "rows": .array(
        matrix.words.enumerated().map { row, word in
          [
            "true": .string(word), "counts": .array(matrix.counts[row].map { .integer(Int64($0)) }),
            "correct": json(matrix.correct(row)), "coverage": json(matrix.coverage(row)),
          ]
        }),
      "correct": json(matrix.correct()), "coverage": json(matrix.coverage()),
      "balanced": .rounded(matrix.balanced, places: 4),
    ]
  }

  private static func json(_ position: PositionEvaluation, _ residual: Double?, _ fault: PositionFault?) -> JSON {
    let survey = position.position
    return [
      "capture": .string(survey.capture), "side": .string(survey.side.rawValue), "distance_m": .number(survey.distance),
      "x_m": survey.place.map { .number($0.x) } ?? .null, "y_m": survey.place.map { .number($0.y) } ?? .null,
      "body": .bool(survey.hasBody), "method": survey.method.map { .string($0) } ?? .null,
      "step": .string(position.step.id.description), "packets": .integer(Int64(position.packets)),
      "rate_per_s": .rounded(position.rate, places: 2), "level_db": .rounded(position.level, places: 2),
      "rssi_dbm": .rounded(position.rssi, places: 2), "residual_db": .rounded(residual, places: 2),
      "zone": position.zone.map { .string($0.rawValue) } ?? .null,
      "zones": .object(
        zip(Zone.allCases, position.zones).map { .init($0.rawValue, .integer(Int64($1))) }),
      "sides": .object(
        zip(Side.allCases.map(\.rawValue) + ["undecided"], position.sides).map { .init($0, .integer(Int64($1))) }),
      "decisions": .integer(Int64(position.decisions)), "located": .integer(Int64(position.located)),
      "located_elsewhere": .integer(Int64(position.locatedElsewhere)),
      "first_located_s": .rounded(position.firstLocated, places: 2),
      "fault": fault.map { .string($0.word) } ?? .null, "sentence": fault.map { .string($0.sentence) } ?? .null,
    ]
  }

  private static func json(_ method: OpeningStatistics) -> JSON {
    [
      "method": method.method.map { .string($0.rawValue) } ?? .null, "attempts": .integer(Int64(method.count)),
      "success": json(method.success), "p50_s": .rounded(method.times.quantile(0.5), places: 3),
      "p95_s": .rounded(method.times.quantile(0.95), places: 3),
      "failures": .object(method.failures.map { .init($0.code, .integer(Int64($0.count))) }),
      "failed_p50_s": .rounded(method.failedAfter, places: 3),
    ]
  }
}
