import CommandParts
import Domain
import Geography
import Terminal
import Traffic

/// Which part of a road is shown, and how.
struct RoadView {
  /// The middle of the picture, and the upward direction in radians clockwise from north.
  var center = Vector.zero
  var up = 0.0
  /// The width of a column in metres.
  var scale = 1.0
  /// Whether the picture follows the vehicle, or the road's middle if there is no vehicle.
  var follows = true

  static let scales = 0.1...20.0

  /// The action of a key; nil for a key without one.
  enum Key: Equatable {
    case zoomIn, zoomOut, left, right, up, down, follow, turn, quit

    init?(_ character: Character) {
      switch character {
      case "+", "=": self = .zoomIn
      case "-", "_": self = .zoomOut
      case "h", "H": self = .left
      case "l", "L": self = .right
      case "k", "K": self = .up
      case "j", "J": self = .down
      case "f", "F": self = .follow
      case "n", "N": self = .turn
      case "q", "Q": self = .quit
      default: return nil
      }
    }

    /// The pressed keys. For an arrow a terminal sends ESC [ A to D, or ESC O A to D (xterm's "application cursor
    /// keys").
    static func all(in characters: [Character]) -> [Key] {
      var keys: [Key] = []
      var rest = characters[...]
      while let first = rest.popFirst() {
        guard first == "\u{1B}", let second = rest.first, second == "[" || second == "O" else {
          if let key = Key(first) { keys.append(key) }
          continue
        }
        rest = rest.dropFirst()
        switch rest.popFirst() {
        case "A": keys.append(.up)
        case "B": keys.append(.down)
        case "C": keys.append(.right)
        case "D": keys.append(.left)
        default: break
        }
      }
      return keys
    }
  }

  /// - Parameter heading: the vehicle's heading; nil without a vehicle.
  mutating func press(_ key: Key, heading: Double?) {
    switch key {
    case .zoomIn: scale = max(scale / 1.5, Self.scales.lowerBound)
    case .zoomOut: scale = min(scale * 1.5, Self.scales.upperBound)
    case .left: pan(right: -8, up: 0)
    case .right: pan(right: 8, up: 0)
    case .up: pan(right: 0, up: 8)
    case .down: pan(right: 0, up: -8)
    case .follow: follows.toggle()
    case .turn: up = up == 0 ? heading ?? 0 : 0
    case .quit: break
    }
  }

  /// Moves the picture by this many columns.
  private mutating func pan(right: Double, up: Double) {
    follows = false
    center = Pose(position: center, heading: self.up).outer(point: Vector(x: up * scale, y: right * scale))
  }
}

/// The recent frames of a feed.
struct RoadTraffic {
  /// The newest frame of each section, and its arrival in seconds of a steady clock.
  private(set) var sections: [String: (frame: FeedFrame, came: Double)] = [:]
  private var arrivals: [Double] = []
  /// Seconds from the last frame's stamp to its arrival; nil before the first frame.
  private(set) var delay: Double?
  private var last: Double?
  private(set) var dropped = 0

  /// Seconds after which a silent section is no longer shown. Frames are counted over the same time.
  static let memory = 2.0

  mutating func take(_ frame: FeedFrame, delay: Double, dropped: Int = 0, at now: Double) {
    sections[frame.section] = (frame, now)
    sections = sections.filter { now - $0.value.came <= Self.memory }
    arrivals.removeAll { now - $0 > Self.memory }
    arrivals.append(now)
    self.delay = delay
    self.dropped += dropped
    last = now
  }

  var objects: [RoadObject] { sections.sorted { $0.key < $1.key }.flatMap { $0.value.frame.objects } }

  /// Frames a second.
  func rate(at now: Double) -> Double { Double(arrivals.count { now - $0 <= Self.memory }) / Self.memory }

  /// Seconds since the last frame; nil before the first one.
  func silence(at now: Double) -> Double? { last.map { now - $0 } }
}

/// A road from above: a vehicle with its steps, and what is around it, to scale.
///
///     title
///     the road
///     what is serious, and how often
///     how the feed is
///     the keys
///
/// Color never carries information alone: each serious scenario has a letter.
struct RoadFrame {
  enum Connection: Equatable {
    case connecting, connected
    case ended(String)
  }

  private let view: RoadView
  private let plane: LocalPlane
  private let site: TrafficGuard.Site?
  private let objects: [RoadObject]
  private let title: String
  private let state: String
  private let isAlive: Bool
  private let size: Screen.Size
  private let glyphs: Glyphs
  private let style: (String, Console.Style) -> String

  /// - Parameters:
  ///   - state: the feed's state.
  ///   - isAlive: whether the feed can be relied on.
  init(
    _ objects: [RoadObject], _ view: RoadView, on plane: LocalPlane, site: TrafficGuard.Site?, title: String,
    state: String, isAlive: Bool, size: Screen.Size, glyphs: Glyphs, style: @escaping (String, Console.Style) -> String
  ) {
    self.objects = objects
    self.view = view
    self.plane = plane
    self.site = site
    self.title = title
    self.state = state
    self.isAlive = isAlive
    self.size = size
    self.glyphs = glyphs
    self.style = style
  }

  static let keys = "+ - zoom   arrows pan   f follow   n north   q quit"

  /// At most as many lines as there are rows, each shorter than a row.
  var lines: [String] {
    let width = max(1, size.columns - 1)
    func line(_ text: String, _ style: Console.Style? = nil) -> String {
      let text = glyphs.text(text, in: width)
      return style.map { self.style(text, $0) } ?? text
    }
    let below = [
      line(Self.legend(of: objects)), line(state, isAlive ? .good : .bad), line(Self.keys, .dim),
    ]
    // If there is little room, the state comes first. Otherwise an empty legend keeps its line: the road must not jump.
    guard size.rows >= 7 else { return Array([below[1], below[0]].prefix(size.rows)) }
    return [line(title, .strong)] + picture(rows: size.rows - 4, columns: width) + below
  }

  /// The number of objects in each scenario that there is; empty where nothing is serious.
  static func legend(of objects: [RoadObject]) -> String {
    let kinds = objects.compactMap(\.scenarios.mostSerious)
    let parts = RoadObject.Scenarios.Kind.allCases.compactMap { kind -> String? in
      let count = kinds.count { $0 == kind }
      return count == 0 ? nil : "\(kind.mark) \(kind.rawValue) \(count)"
    }
    return parts.joined(separator: "   ")
  }

  // MARK: - Picture

  private func picture(rows: Int, columns: Int) -> [String] {
    var canvas = DotCanvas(rows: rows, columns: columns, glyphs: glyphs)
    let pose = Pose(position: view.center, heading: view.up)
    let middle = (x: Double(columns) / 2, y: Double(rows))
    /// Converts a place in the plane to a place on the canvas.
    func place(_ point: Vector) -> (x: Double, y: Double) {
      let inner = pose.inner(point: point)
      return (middle.x + inner.y / view.scale, middle.y - inner.x / view.scale)
    }
    func point(_ place: (x: Double, y: Double)) -> Vector {
      pose.outer(point: Vector(x: (middle.y - place.y) * view.scale, y: (place.x - middle.x) * view.scale))
    }
    func fill(_ box: Box, _ style: Console.Style?) {
      let corners = box.corners.map(place)
      let (xs, ys) = (corners.map(\.x), corners.map(\.y))
      guard let left = xs.min(), let right = xs.max(), let top = ys.min(), let bottom = ys.max() else { return }
      for dot in canvas.dots(x: left...right, y: top...bottom) where box.distance(to: point(dot)) == 0 {
        canvas.dot(x: dot.x, y: dot.y, style)
      }
      // Draws at least one dot for an object smaller than a dot.
      let center = place(box.center)
      canvas.dot(x: center.x, y: center.y, style)
    }
    var labels: [(text: String, place: (x: Double, y: Double), style: Console.Style)] = []
    for object in objects {
      let usual = object.category.usualSize
      let box = Box(
        center: plane.point(of: object.position), heading: object.heading, length: object.length ?? usual.x,
        width: object.width ?? usual.y)
      let kind = object.scenarios.mostSerious
      let style: Console.Style? = kind.map { $0 == .wrongWay ? .bad : .strong }
      fill(box, style)
      // A line to the place where it will be in a second.
      if object.velocity.length >= 0.3 {
        let front = box.center + box.forward * box.half.x
        canvas.line(from: place(front), to: place(front + object.velocity), style ?? .dim)
      }
      if let kind { labels.append((kind.mark, place(box.center), style ?? .strong)) }
    }
    if let site {
      let own = Pose(position: plane.point(of: site.position), heading: site.heading)
      func outer(_ box: Box) -> Box {
        Box(center: own.outer(point: box.center), forward: own.outer(way: box.forward), half: box.half)
      }
      let corners = outer(
        Box(center: .zero, heading: 0, length: site.length, width: site.width)
      ).corners.map(place)
      for (from, to) in zip(corners, corners[1...] + corners[..<1]) { canvas.line(from: from, to: to, .good) }
      for step in site.steps { fill(outer(site.box(of: step)), .good) }
      labels.append(("you", place(own.position), .good))
    }
    for label in labels {
      canvas.text(label.text, x: label.place.x - Double(label.text.count / 2), y: label.place.y, label.style)
    }
    drawScale(on: &canvas)
    return canvas.lines(style: style)
  }

  /// The scale, in a round number of metres, and the direction of north.
  private func drawScale(on canvas: inout DotCanvas) {
    let metres = [1.0, 2, 5, 10, 20, 50, 100, 200].first { $0 / view.scale >= 8 } ?? 500
    let y = Double(canvas.rows * 2) - 1
    canvas.line(from: (1, y), to: (1 + metres / view.scale, y), .dim)
    canvas.text(" \(Int(metres)) m ", x: 2 + metres / view.scale, y: y, .dim)
    let north = Pose(position: .zero, heading: view.up).inner(way: Vector(x: 1, y: 0))
    let (x, top) = (Double(canvas.columns) - 5, 5.0)
    canvas.line(from: (x, top), to: (x + north.y * 3, top - north.x * 3), .dim)
    canvas.text("N", x: x + north.y * 4, y: max(0, top - north.x * 4), .dim)
  }
}

extension RoadObject.Scenarios.Kind {
  /// The letter for this scenario.
  var mark: String {
    switch self {
    case .wrongWay: "W"
    case .standing: "S"
    case .tailgating: "T"
    case .speeding: "V"
    case .laneChange: "L"
    }
  }
}
