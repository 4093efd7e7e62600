import CommandParts
import Domain
import Ranging
import StepProtocol
import Terminal

/// A decision, drawn for a rider who walks up to the vehicle.
///
///     title
///     the vehicle from above, its steps and the rider
///     what is heard of each step
///     how sure it is
///     what to do next, or what becomes of the command
///     the keys
///
/// Color never carries information alone. If there is little room, the picture is left out first, and the advice last.
struct ApproachFrame {
  private let report: LocationReport
  private let side: Side?
  private let steps: DrawnSteps?
  private let size: Screen.Size
  private let glyphs: Glyphs
  private let style: (String, Console.Style) -> String
  private let news: String?
  private let keys: Keys?

  /// What the keys do, and what the rider has chosen with them.
  struct Keys {
    /// As short as they can be: they have room in 40 columns.
    static let all = "o open   c close   s stop   q quit"
    /// What happens as soon as the rider is there: `opens when you are there, 7 s left`; nil for nothing.
    var wish: String?
  }

  /// - Parameters:
  ///   - side: the side that the rider asked for; nil for either.
  ///   - steps: how the steps stand; nil where nobody can ask the vehicle.
  ///   - news: replaces the advice.
  ///   - keys: nil if there are none.
  ///   - style: adds the attributes of a style to a text, if they are wanted.
  init(
    _ report: LocationReport, to side: Side? = nil, steps: DrawnSteps? = nil, news: String? = nil, keys: Keys? = nil,
    size: Screen.Size, glyphs: Glyphs,
    style: @escaping (String, Console.Style) -> String
  ) {
    self.report = report
    self.side = side
    self.steps = steps
    self.news = news
    self.keys = keys
    self.size = size
    self.glyphs = glyphs
    self.style = style
  }

  private var location: Location { report.location }
  /// One column stays free at each side.
  private var width: Int { max(1, size.columns - 2) }

  /// At most as many lines as there are rows, each shorter than a row.
  var lines: [String] {
    let steps = stepLines
    let keys = keyLines(atMost: size.rows - steps.count - 3)
    let spare = size.rows - steps.count - keys.count - 3
    if spare < 0 { return ((spare == -1 ? steps : []) + [confidence, advice]).suffix(size.rows) }

    // If there is little room, the picture has no empty lines around it.
    let picture = VehiclePicture(
      location, steps: self.steps, rows: spare < VehiclePicture.leastRows + 5 ? spare : spare - 3, columns: width,
      glyphs: glyphs)
    let used = picture?.rows ?? 0
    var gaps = spare - used
    func gap() -> [String] {
      gaps -= 1
      return gaps < 0 ? [] : [""]
    }
    var lines = [title] + gap()
    if let picture { lines += picture.lines(style: style).map(indented) + gap() }
    return lines + steps + gap() + [confidence, advice] + keys
  }

  // MARK: - Parts

  private var title: String {
    let time = "\(tenths(location.time)) s"
    let room = width - time.count - 2
    guard room > 0 else { return indented(text(time)) }
    return indented(style(text(report.vehicle.name, in: room).aligned(to: room), .strong) + "  " + style(time, .dim))
  }

  /// A line for each step, with as many columns as fit.
  private var stepLines: [String] {
    let name = min(location.readings.map { $0.step.id.description.count }.max() ?? 0, max(5, width - 35))
    let state = steps == nil ? 0 : 7
    // From left to right. The column with the highest rank is left out first.
    let columns: [(rank: Int, width: Int, isNumber: Bool, text: (Location.Reading) -> String)] = [
      (0, 1, false, { String(report.mark(of: $0)) }),
      (0, name, false, { text($0.step.id.description, in: name) }),
      (1, state, false, { steps?[$0.step.id].word ?? "" }),
      (2, 9, false, { $0.zone.column }),
      (3, 7, true, { $0.distance.map { "\(tenths($0.metres)) m" } ?? "-" }),
      (5, 15, false, { $0.distance.map { "(\(tenths($0.low)) to \(tenths($0.high)) m)" } ?? "" }),
      (7, 8, true, { $0.rssi.map { "\($0) dBm" } ?? "-" }),
      (6, 11, true, { "\($0.packets) packets" }),
      (4, 11, true, { $0.age.map { "\(tenths($0)) s ago" } ?? "not heard" }),
    ].filter { $0.width > 0 }
    let shown = (0...7).last { rank in
      columns.filter { $0.rank <= rank }.map { $0.width + 1 }.reduce(-1, +) <= width
    }
    return location.readings.map { reading in
      let line = columns.filter { $0.rank <= shown ?? 0 }
        .map { $0.text(reading).aligned(to: $0.width, right: $0.isNumber) }.joined(separator: " ")
      let kept = text(line)
      if reading.step == location.facing { return indented(style(kept, location.isLocated ? .good : .strong)) }
      return indented(reading.packets == 0 ? style(kept, .dim) : kept)
    }
  }

  /// With so little room that nothing else is shown, the keys are useless.
  private func keyLines(atMost most: Int) -> [String] {
    guard let keys, most > 0 else { return [] }
    let wish = keys.wish ?? ""
    let line = wish.isEmpty ? Keys.all : "\(Keys.all)   \(wish)"
    // The keys are never cut for the sake of what they chose.
    let lines = line.columns <= width || wish.isEmpty || most < 2 ? [line] : [wish, Keys.all]
    return lines.map { indented(style(text($0), .dim)) }
  }

  private var confidence: String {
    guard let facing = location.facing else { return indented(text("? cannot tell yet which step")) }
    let text = text(
      location.isLocated
        ? "\(glyphs.decided) decided: at the \(facing.id) step"
        : "\(glyphs.leaning) leaning: towards the \(facing.id) step")
    return indented(style(text, location.isLocated ? .good : .strong))
  }

  private var advice: String {
    if let news { return indented(style(text("\(glyphs.arrow) \(news)"), .strong)) }
    let advice = Advice(report, to: side)
    let room = width - glyphs.arrow.columns - 1
    let name = text(report.vehicle.name, in: max(1, room - advice.sentence(naming: "").columns))
    let isOut = location.facing.map { steps?[$0.id] == .extended } ?? false
    let key = keys.map { _ in isOut ? Command.Move.Target.close : .open }
    return indented(style(text("\(glyphs.arrow) \(advice.sentence(naming: name, pressing: key))"), advice.style))
  }

  // MARK: - Text

  private func text(_ text: String, in room: Int? = nil) -> String { glyphs.text(text, in: room ?? width) }

  private func indented(_ line: String) -> String { line.isEmpty || size.columns < 3 ? line : " " + line }
}
