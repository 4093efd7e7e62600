import CommandParts
import Domain
import Encoding
import Evaluation
import SystemIO

/// A report's content as pictures (SVG) for publication.
struct EvaluationPlots {
  private let report: EvaluationReport

  init(_ report: EvaluationReport) { self.report = report }

  /// Writes the pictures that have data; replaces existing files of the same names.
  func write(to folder: String) throws(SystemError) {
    try Files.createFolder(folder, mode: 0o755)
    for (name, plot) in pictures {
      try Files.replace("\(folder)/\(name).svg", with: plot.svg.utf8, mode: 0o644)
    }
  }

  private var pictures: [(name: String, plot: Plot)] {
    var pictures: [(name: String, plot: Plot)] = []
    if let site = report.site {
      if !site.zones.isEmpty { pictures.append(("zones", matrix(site.zones, "zone", of: site))) }
      pictures.append(("sides", matrix(site.sides, "side", of: site)))
      pictures.append(("rssi", rssi(site)))
      if site.positions.contains(where: { $0.position.place != nil }) { pictures.append(("map", SiteMap(site).plot)) }
    }
    if !report.openings.isEmpty { pictures.append(("open", openings)) }
    return pictures
  }

  // MARK: - Confusion matrix

  private func matrix(_ matrix: ConfusionMatrix, _ word: String, of site: SiteEvaluation) -> Plot {
    let (left, top, cell) = (130.0, 90.0, (width: 105.0, height: 56.0))
    let columns = matrix.words + [matrix.undecided]
    let right = left + cell.width * Double(columns.count)
    let bottom = top + cell.height * Double(matrix.words.count)
    var plot = Plot(
      "Confusion matrix of the \(word)s",
      subtitle: """
        \(site.vehicle.name): \(site.positions.count) captures; correct \(EvaluationReport.percent(matrix.correct())) of \
        the decided, coverage \(EvaluationReport.percent(matrix.coverage())); 95 % Wilson intervals over captures
        """, size: (max(right + 270, 820), bottom + 70))
    for (row, truth) in matrix.words.enumerated() {
      let y = top + cell.height * Double(row)
      let all = matrix.counts[row].reduce(0, +)
      for (column, count) in matrix.counts[row].enumerated() {
        let x = left + cell.width * Double(column)
        let share = all > 0 ? Double(count) / Double(all) : 0
        let color = column == row ? Plot.blue : column == matrix.words.count ? Plot.grey : Plot.red
        plot.box(x: x + 1, y: y + 1, width: cell.width - 2, height: cell.height - 2, fill: "#eeeeee")
        if count > 0 {
          plot.box(x: x + 1, y: y + 1, width: cell.width - 2, height: cell.height - 2, fill: color, opacity: share)
        }
        let ink = share > 0.55 ? "white" : "black"
        plot.text("\(count)", x: x + cell.width / 2, y: y + cell.height / 2 - 2, size: 15, color: ink)
        let part = all > 0 ? "\(Int((share * 100).rounded())) %" : "-"
        plot.text(part, x: x + cell.width / 2, y: y + cell.height / 2 + 15, size: 11, color: ink)
      }
      plot.text(truth, x: left - 8, y: y + cell.height / 2 + 4, anchor: "end")
      let correct = EvaluationReport.percent(matrix.correct(row))
      plot.text("correct of decided \(correct)", x: right + 12, y: y + cell.height / 2 - 3, anchor: "start")
      let coverage = EvaluationReport.percent(matrix.coverage(row))
      plot.text("coverage \(coverage)", x: right + 12, y: y + cell.height / 2 + 14, anchor: "start")
    }
    for (column, name) in columns.enumerated() {
      plot.text(name, x: left + cell.width * (Double(column) + 0.5), y: bottom + 18)
    }
    plot.text("\(word) that was said, decisions", x: (left + right) / 2, y: bottom + 42)
    plot.sideText("true \(word)", x: 28, y: (top + bottom) / 2)
    return plot
  }

  // MARK: - RSSI over distance

  private func rssi(_ site: SiteEvaluation) -> Plot {
    let size = (width: 900.0, height: 760.0)
    // The axis can show dBm if all positions share one measured power.
    let powers = Set(site.positions.compactMap(\.measuredPower))
    let power = powers.count == 1 ? powers.first : nil
    let offset = Double(power ?? 0)
    let unit = power != nil ? "RSSI, dBm" : "RSSI above the measured power, dB"
    var subtitle = "\(site.vehicle.name): \(site.positions.count) captures; no law could be fitted"
    if let law = site.law {
      subtitle = """
        \(site.vehicle.name): least squares over \(law.positions) positions: n = \
        \(hundredths(law.exponent)) ± \(hundredths(law.exponentError)), \
        \(tenths(law.level + offset)) ± \(tenths(law.levelError)) \(power != nil ? "dBm" : "dB") at 1 m, \
        σ = \(tenths(law.sigma)) dB
        """
    }
    var plot = Plot("RSSI over distance", subtitle: subtitle, size: size)
    let distances = Self.extent(site.positions.map(\.position.distance))
    let (nearest, farthest) = (distances.lowerBound / 1.25, distances.upperBound * 1.25)
    let across = Plot.Scale(nearest...farthest, from: 75, to: size.width - 25, isLogarithmic: true)
    let ranges = site.positions.compactMap(\.quartiles)
    let ends =
      site.law.map { law in
        [law.level(at: nearest) + law.sigma, law.level(at: farthest) - law.sigma]
      } ?? []
    let least = (ranges.map(\.lowerBound) + ends).min() ?? -40
    let most = (ranges.map(\.upperBound) + ends).max() ?? 0
    let upward = Plot.Scale((least - 3 + offset)...(most + 3 + offset), from: 460, to: 95)
    plot.axes(across, upward, x: "distance, m", y: unit)
    if let law = site.law {
      // The law is a straight line on this scale.
      func line(_ shift: Double) -> [(x: Double, y: Double)] {
        [nearest, farthest].map { (across[$0], upward[law.level(at: $0) + offset + shift]) }
      }
      plot.line(line(0), Plot.red)
      for shift in [-law.sigma, law.sigma] { plot.line(line(shift), Plot.red, width: 1, dashes: "4 4") }
    }
    legend(in: &plot, y: 72, hasLaw: site.law != nil)
    // Names the faulty positions, as many as stay readable: those farthest from the law.
    let bad = site.positions.indices.filter { site.faults[$0] != nil }
    let named = bad.sorted { abs(site.residuals[$0] ?? 0) > abs(site.residuals[$1] ?? 0) }.prefix(12)
    var layout = LabelLayout(
      room: LabelLayout.Box(
        x: across.begin + 1, y: upward.end, width: across.end - across.begin, height: upward.begin - upward.end))
    var labels: [(text: String, mark: (x: Double, y: Double))] = []
    for (index, position) in site.positions.enumerated() {
      guard let level = position.level, let quartiles = position.quartiles else { continue }
      let (x, y) = (across[position.position.distance], upward[level + offset])
      let color = position.position.side == .left ? Plot.blue : Plot.green
      plot.line(
        [(x, upward[quartiles.lowerBound + offset]), (x, upward[quartiles.upperBound + offset])], color, width: 1)
      plot.dot(x: x, y: y, color: color, isFilled: !position.position.hasBody)
      layout.keep(x: x, y: y, radius: 4)
      if named.contains(index) { labels.append((position.position.capture, (x, y))) }
    }
    for (text, mark) in labels {
      guard let label = layout.label(text, size: 11, beside: mark, radius: 4) else { continue }
      if let line = label.line { plot.line(line, Plot.grey, width: 0.5) }
      plot.text(text, x: label.x, y: label.y, size: 11)
    }
    residuals(site, across, in: &plot, top: 540, bottom: 700)
    return plot
  }

  /// From the smallest to the largest value; a picture is drawn only if there are values.
  private static func extent(_ values: [Double]) -> ClosedRange<Double> { (values.min() ?? 0)...(values.max() ?? 0) }

  private func legend(in plot: inout Plot, y: Double, hasLaw: Bool) {
    var x = 80.0
    func next(_ text: String, _ width: Double, _ mark: (inout Plot) -> Void) {
      mark(&plot)
      plot.text(text, x: x + 24, y: y + 4, anchor: "start", size: 11)
      x += width
    }
    for (side, color) in [("left step", Plot.blue), ("right step", Plot.green)] {
      next(side, 95) { $0.dot(x: x + 10, y: y, color: color, isFilled: true) }
    }
    next("body between (not fitted)", 175) { $0.dot(x: x + 10, y: y, color: Plot.blue, isFilled: false) }
    next("quartiles of the packets", 175) { $0.line([(x + 10, y - 7), (x + 10, y + 7)], Plot.blue, width: 1) }
    guard hasLaw else { return }
    next("fitted law", 90) { $0.line([(x, y), (x + 20, y)], Plot.red) }
    next("± σ", 60) { $0.line([(x, y), (x + 20, y)], Plot.red, width: 1, dashes: "4 4") }
  }

  private func residuals(
    _ site: SiteEvaluation, _ across: Plot.Scale, in plot: inout Plot, top: Double, bottom: Double
  ) {
    let rests = site.residuals.compactMap(\.self)
    guard let law = site.law, let most = rests.map(abs).max() else { return }
    let room = max(most, law.sigma, 1) * 1.15
    let upward = Plot.Scale(-room...room, from: bottom, to: top)
    plot.axes(across, upward, x: "distance, m", y: "residual, dB")
    plot.line([(across.begin, upward[0]), (across.end, upward[0])], Plot.red)
    for sigma in [-law.sigma, law.sigma] {
      plot.line([(across.begin, upward[sigma]), (across.end, upward[sigma])], Plot.red, width: 1, dashes: "4 4")
    }
    for (position, rest) in zip(site.positions, site.residuals) {
      guard let rest else { continue }
      plot.dot(
        x: across[position.position.distance], y: upward[rest],
        color: position.position.side == .left ? Plot.blue : Plot.green, isFilled: !position.position.hasBody)
    }
  }

  // MARK: - Time to open

  /// The share of all attempts that had opened the step by a given time. Failures keep the curve below 1.
  private var openings: Plot {
    let size = (width: 900.0, height: 470.0)
    let attempts = report.openings.reduce(0) { $0 + $1.count }
    var plot = Plot(
      "Time to open, by method", subtitle: "\(attempts) attempts; a curve that stays below 1 shows failures", size: size
    )
    let longest = report.openings.compactMap(\.times.last).max() ?? 1
    let across = Plot.Scale(0...max(longest * 1.05, 0.1), from: 75, to: size.width - 330)
    let upward = Plot.Scale(0...1, from: 410, to: 70)
    plot.axes(across, upward, x: "time since the command began, s", y: "share of the attempts that opened")
    let styles: [(color: String, dashes: String?)] = [
      (Plot.blue, nil), (Plot.green, "8 4"), (Plot.red, "3 3"), (Plot.yellow, "10 3 3 3"), (Plot.grey, "1 3"),
    ]
    for (index, method) in report.openings.enumerated() {
      let style = styles[index]
      var points = [(x: across[0], y: upward[0])]
      for (count, time) in method.times.enumerated() {
        let share = { (count: Int) in upward[Double(count) / Double(method.count)] }
        points += [(across[time], share(count)), (across[time], share(count + 1))]
      }
      points.append((across.end, upward[Double(method.times.count) / Double(method.count)]))
      plot.line(points, style.color, width: 2, dashes: style.dashes)
      let y = 90 + Double(index) * 46
      plot.line([(across.end + 20, y), (across.end + 48, y)], style.color, width: 2, dashes: style.dashes)
      let x = across.end + 56
      plot.text(
        "\(EvaluationReport.name(of: method.method)): \(method.times.count) of \(method.count) opened", x: x, y: y + 4,
        anchor: "start")
      func seconds(_ part: Double) -> String { method.times.quantile(part).map { "\(tenths($0)) s" } ?? "-" }
      plot.text(
        "\(EvaluationReport.percent(method.success)), p50 \(seconds(0.5)), p95 \(seconds(0.95))", x: x, y: y + 20,
        anchor: "start", size: 11)
    }
    return plot
  }
}
