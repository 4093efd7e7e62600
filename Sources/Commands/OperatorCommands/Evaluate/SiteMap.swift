import Domain
import Evaluation
import Glibc

/// Where the rider was located, and where the vehicle stood, seen from above.
struct SiteMap {
  private typealias Place = VehicleOutline.Place

  /// Half the widths of the marks of a step and of a position.
  private static let (step, ring) = (5.0, 7.0)
  /// More labels would not be readable.
  private static let mostLabels = 100

  private(set) var plot: Plot
  private let across: Plot.Scale
  private let upward: Plot.Scale
  private var layout: LabelLayout
  private var labels: [(text: String, x: Double, y: Double)] = []

  /// - Parameter site: at least one of its positions has coordinates.
  init(_ site: SiteEvaluation) {
    let positions = zip(site.positions, site.faults).compactMap { position, fault in
      position.position.place.map { (position: position, isBad: fault != nil, place: $0) }
    }
    let vehicle = VehicleOutline(site.positions.map(\.position))
    let body = vehicle?.body ?? []
    let (xs, ys) = (positions.map(\.place.x) + body.map(\.x), positions.map(\.place.y) + body.map(\.y))
    // A row of positions needs room for labels.
    let least = max((xs.max() ?? 0) - (xs.min() ?? 0), (ys.max() ?? 0) - (ys.min() ?? 0)) / 2
    let (x, y) = (Self.range(xs, least: least), Self.range(ys, least: least))
    // A metre is equally long in both directions.
    let metre = min(900 / (x.upperBound - x.lowerBound), 700 / (y.upperBound - y.lowerBound))
    let (width, height) = ((x.upperBound - x.lowerBound) * metre, (y.upperBound - y.lowerBound) * metre)
    plot = Plot(
      "Where a step could have been moved",
      subtitle: "\(site.vehicle.name): how often located at the side's step (blue); a red ring: a bad place",
      size: (max(width + 120, 640), height + 170))
    across = Plot.Scale(x, from: 75, to: 75 + width)
    upward = Plot.Scale(y, from: 100 + height, to: 100)
    layout = LabelLayout(room: LabelLayout.Box(x: 76, y: 100, width: width - 2, height: height - 1))
    plot.axes(across, upward, x: "x, m", y: "y, m")
    draw(vehicle)
    let marks = place(positions.map(\.place))
    for (side, place) in vehicle?.steps ?? [] { label("\(side.rawValue) step", onPage(place), radius: Self.step) }
    draw(positions, at: marks)
    for (text, x, y) in labels { plot.text(text, x: x, y: y, size: 10) }
  }

  private static func range(_ values: [Double], least: Double) -> ClosedRange<Double> {
    let (low, high) = (values.min() ?? 0, values.max() ?? 0)
    let margin = max(0, least - (high - low)) / 2 + 0.5
    return low - margin...high + margin
  }

  private mutating func draw(_ vehicle: VehicleOutline?) {
    let note =
      vehicle == nil
      ? "the vehicle is not drawn: coordinates and distances do not tell where its steps are"
      : "the vehicle (its front is narrower) is where the distances put its steps; its length is not measured"
    plot.text(note, x: 20, y: 64, anchor: "start", size: 11)
    guard let vehicle else { return }
    plot.shape(vehicle.body.map(onPage), fill: "#eeeeee", stroke: Plot.grey)
    for (_, place) in vehicle.steps {
      let (x, y) = onPage(place)
      plot.box(x: x - Self.step, y: y - Self.step, width: 2 * Self.step, height: 2 * Self.step, fill: "black")
      _ = layout.mark(x: x, y: y, radius: Self.step)
    }
  }

  /// Captures of one place stand side by side, and a line leads to the place.
  ///
  /// - Returns: where the marks are, in page coordinates.
  private mutating func place(_ places: [Place]) -> [Place] {
    places.map { place in
      let (x, y) = onPage(place)
      // Rings may touch.
      let mark = layout.mark(x: x, y: y, radius: Self.ring - 1)
      if mark != (x, y) { plot.line([mark, (x, y)], Plot.grey, width: 1) }
      return mark
    }
  }

  private mutating func draw(
    _ positions: [(position: PositionEvaluation, isBad: Bool, place: Place)], at marks: [Place]
  ) {
    let order = positions.indices.sorted { positions[$0].isBad && !positions[$1].isBad }
    // Room is scarce where most marks are: those get their labels first.
    let crowds = marks.map { mark in marks.count { hypot($0.x - mark.x, $0.y - mark.y) < 40 } }
    for index in order.prefix(Self.mostLabels).sorted(by: { (crowds[$1], $0) < (crowds[$0], $1) }) {
      let position = positions[index].position
      let name = EvaluationReport.name(position.position.capture)
      label("\(name) \(Int((position.locatedShare * 100).rounded())) %", marks[index], radius: Self.ring)
    }
    for (position, mark) in zip(positions, marks) {
      plot.dot(x: mark.x, y: mark.y, color: position.isBad ? Plot.red : Plot.grey, isFilled: false, radius: Self.ring)
      plot.dot(
        x: mark.x, y: mark.y, color: Plot.blue, isFilled: true, radius: Self.ring - 2,
        opacity: position.position.locatedShare)
    }
  }

  private mutating func label(_ text: String, _ mark: Place, radius: Double) {
    guard let label = layout.label(text, size: 10, beside: mark, radius: radius) else { return }
    if let line = label.line { plot.line(line, Plot.grey, width: 0.5) }
    labels.append((text, label.x, label.y))
  }

  private func onPage(_ place: Place) -> Place { (across[place.x], upward[place.y]) }
}

extension PositionEvaluation {
  /// How often the rider was located at the side's step, 0 to 1.
  fileprivate var locatedShare: Double { decisions > 0 ? Double(located) / Double(decisions) : 0 }
}
