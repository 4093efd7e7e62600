import ArgumentParser
import CommandParts
import Domain
import Encoding
import Evaluation
import Geography
import SystemIO
import Terminal
import Traffic
import TrafficFeed

struct TrafficWatch: ContextCommand {
  static let configuration = CommandConfiguration(
    commandName: "watch",
    abstract: "Show what is on a road: from above on a terminal, else in lines.",
    usage: "stepctl traffic watch --feed <feed> <options>",
    discussion: "A recording runs on its own clock. See stepctl-traffic-watch(1) for the picture and its keys.")

  @OptionGroup var feed: FeedOptions

  @Option(
    help: ArgumentHelp("Where a vehicle and its steps are, to be shown too.", valueName: "file"),
    completion: .file(extensions: ["json"]))
  var scene: String?

  @Option(
    name: .customLong("for"),
    help: ArgumentHelp("End after this time, as 60, 60s or 2m (default: never).", valueName: "seconds"))
  var duration: TimeSpan?

  @Option(
    help: ArgumentHelp("Save the frames as a recording, into a new file.", valueName: "file"),
    completion: .file(extensions: ["jsonl"]))
  var save: String?

  @OptionGroup var output: OutputOptions

  func validate() throws { try feed.check(duration: duration, placeBy: scene == nil ? "give --at or --scene" : nil) }

  func run(in context: Context) throws {
    let console = output.console(context)
    let interruption = try context.interruption()
    let site = try scene.map { try GuardScene(reading: $0).site }
    let recorder = try save.map { path throws(SystemError) in try FrameRecorder(path) }
    let loop = try EventLoop()
    let place = feed.at?.coordinate ?? site?.position
    let watch = RoadWatch(site, place: place, title: feed.feed.description, context, console, recorder)
    defer { watch.close() }
    try watch.takeKeys(on: loop)
    let source = try feed.start(at: place, on: loop, in: context, interruption, watch.arrived)
    defer { source.end() }
    try loop.watch(interruption.number) { loop.stop() }
    if let duration {
      loop.schedule(at: .now + .milliseconds(Int64(duration.seconds * 1000))) { loop.stop() }
    }
    try loop.run()
  }
}

/// Shows a feed live.
private final class RoadWatch {
  private let site: TrafficGuard.Site?
  private let title: String
  private let context: Context
  private let console: Console
  private let recorder: FrameRecorder?
  private let view: LiveView?
  private var road = RoadTraffic()
  private var picture = RoadView()
  private var plane: LocalPlane?
  private var clock = ClockOffset()
  private var connection = RoadFrame.Connection.connecting
  private var isDue = true
  private weak var loop: EventLoop?
  private var lastLine = -Double.infinity
  private var isHinted = false
  private var hasCenter = false

  /// The interval between two pictures: too short for people to notice, long enough for a terminal to draw.
  private static let pause = Duration.milliseconds(80)
  /// The interval between two pictures of a silent road.
  private static let patience = Duration.milliseconds(500)

  init(
    _ site: TrafficGuard.Site?, place: Coordinate?, title: String, _ context: Context, _ console: Console,
    _ recorder: FrameRecorder?
  ) {
    self.site = site
    self.title = title
    self.context = context
    self.console = console
    self.recorder = recorder
    view = LiveView(context, console)
    plane = (site?.position ?? place).map(LocalPlane.init)
    picture.up = site?.heading ?? 0
  }

  func close() { view?.close() }

  func takeKeys(on loop: EventLoop) throws {
    self.loop = loop
    guard let view else { return }
    if let keyboard = view.takeKeys() {
      try loop.watch(keyboard) { [unowned self] in
        for key in RoadView.Key.all(in: view.keys) {
          if key == .quit { loop.stop() }
          picture.press(key, heading: site?.heading)
        }
        try draw()
      }
    }
    try refresh()
  }

  /// Redraws at intervals, also when no frame comes.
  private func refresh() throws {
    try draw()
    loop?.schedule(at: .now + Self.patience) { [weak self] in try self?.refresh() }
  }

  private var now: Double { (context.clocks.steady() - Self.epoch).inSeconds }
  private static let epoch = Instant.now

  func arrived(_ event: FeedEvent) throws {
    switch event {
    case .connected: connection = .connected
    case .ended(let reason):
      connection = .ended(reason)
      loop?.stop()
    case .frame(let frame, let dropped):
      connection = .connected
      try recorder?.write(frame)
      let received = Double(frame.received.microseconds) / 1e6
      if let bridge = frame.frame.bridge { clock.take(bridge, at: received) }
      let delay = received + (clock.estimate?.offset ?? 0) - Double(frame.frame.time.microseconds) / 1e6
      road.take(frame.frame, delay: delay, dropped: dropped, at: now)
      follow(frame.frame)
      if console.isJSON {
        try console.result(json(frame.frame, delay))
      } else if view == nil {
        try line()
      }
    }
    guard isDue, view != nil else { return }
    isDue = false
    try draw()
    loop?.schedule(at: .now + Self.pause) { [weak self] in self?.isDue = true }
  }

  private func follow(_ frame: FeedFrame) {
    if plane == nil, let first = frame.objects.first { plane = LocalPlane(at: first.position) }
    guard let plane else { return }
    let places = frame.objects.map { plane.point(of: $0.position) }
    if !places.isEmpty, !isHinted, places.allSatisfy({ $0.length > 50_000 }) {
      isHinted = true
      let hint = "everything is more than 50 km away: are latitude and longitude swapped?"
      if let view { view.note(hint) } else { console.note(hint) }
    }
    guard picture.follows else { return }
    if site != nil {
      picture.center = plane.point(of: plane.origin)
    } else if !places.isEmpty {
      // The objects in the middle of the road change little between frames.
      let sum = places.reduce(Vector.zero, +)
      let middle = sum * (1 / Double(places.count))
      picture.center = hasCenter ? picture.center + (middle - picture.center) * 0.1 : middle
      hasCenter = true
    }
  }

  // MARK: - What is shown

  private func draw() throws {
    guard let view else { return }
    let (now, objects) = (now, road.objects)
    let state = state(at: now)
    let isAlive = connection == .connected && road.silence(at: now) ?? .infinity < 1
    try view.show(last: ["\(title): \(state)"]) { size in
      RoadFrame(
        objects, picture, on: plane ?? LocalPlane(at: Coordinate(latitude: 0, longitude: 0)!), site: site,
        title: title, state: state, isAlive: isAlive, size: size, glyphs: view.glyphs, style: console.styled
      ).lines
    }
  }

  /// `connected: S1, 23 objects, 25.0 frames a second, 165 ms late ± 2 ms`
  private func state(at now: Double) -> String {
    switch connection {
    case .connecting: return "connecting"
    case .ended(let reason): return reason
    case .connected: break
    }
    guard let silence = road.silence(at: now), let delay = road.delay else { return "connected: no frame came yet" }
    if silence >= 1 { return "connected: no frame for \(tenths(silence)) s" }
    let sections = road.sections.keys.sorted().joined(separator: ", ")
    let doubt = clock.estimate.map { " ± \(Int(($0.uncertainty * 1000).rounded(.up))) ms" } ?? ""
    let dropped = road.dropped > 0 ? ", \(road.dropped) dropped" : ""
    return """
      connected: \(printable(sections)), \(road.objects.count) objects, \(tenths(road.rate(at: now))) frames a second, \
      \(Int((delay * 1000).rounded())) ms late\(doubt)\(dropped)
      """
  }

  /// Without a terminal: a line a second.
  private func line() throws {
    guard now - lastLine >= 1 else { return }
    lastLine = now
    let parts = [state(at: now), RoadFrame.legend(of: road.objects)].filter { !$0.isEmpty }
    try console.result("\(timeOfDay(context.clocks.wall()))  \(parts.joined(separator: "; "))")
  }

  private func json(_ frame: FeedFrame, _ delay: Double) -> JSON {
    let plane = plane ?? LocalPlane(at: Coordinate(latitude: 0, longitude: 0)!)
    let pose = site.map { Pose(position: plane.point(of: $0.position), heading: $0.heading) }
    return [
      "time_s": .number(Double(frame.time.microseconds) / 1e6), "section": .string(frame.section),
      "delay_ms": .rounded(delay * 1000, places: 1),
      "uncertainty_ms": .rounded(clock.estimate.map { $0.uncertainty * 1000 }, places: 1),
      "objects": .array(
        frame.objects.map { object in
          let point = pose.map { $0.inner(point: plane.point(of: object.position)) }
          return [
            "id": .string(object.id), "category": .string(object.category.rawValue),
            "latitude": .rounded(object.position.latitude, places: 8),
            "longitude": .rounded(object.position.longitude, places: 8),
            "speed_mps": .rounded(object.velocity.length, places: 2),
            "heading_deg": .rounded(object.heading * 180 / .pi, places: 1),
            "scenario": object.scenarios.mostSerious.map { .string($0.rawValue) } ?? .null,
            "ahead_m": .rounded(point?.x, places: 2), "right_m": .rounded(point?.y, places: 2),
          ]
        }),
    ]
  }
}
