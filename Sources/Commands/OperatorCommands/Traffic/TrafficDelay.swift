import ArgumentParser
import CommandParts
import Domain
import Encoding
import Evaluation
import SystemIO
import Terminal
import Traffic

struct TrafficDelay: ContextCommand {
  static let configuration = CommandConfiguration(
    commandName: "delay",
    abstract: "Say how late a feed is, how far that is on the road, and record it.",
    usage: "stepctl traffic delay --feed <feed> <options>",
    discussion: """
      The delay of a frame is the time from its stamp until it is received. If the bridge sends its own time, the \
      difference of the clocks is subtracted.
      """)

  @OptionGroup var feed: FeedOptions

  @Option(
    name: .customLong("for"),
    help: ArgumentHelp("How long to receive, as 60, 60s or 2m (default: 60).", valueName: "seconds"))
  var duration: TimeSpan?

  @Option(
    help: ArgumentHelp("Save the frames as a recording, into a new file.", valueName: "file"),
    completion: .file(extensions: ["jsonl"]))
  var save: String?

  @Option(
    help: ArgumentHelp("Draw how often each delay occurred, and the delay over time, into a file.", valueName: "file"),
    completion: .file(extensions: ["svg"]))
  var plot: String?

  @OptionGroup var output: OutputOptions

  func validate() throws {
    try feed.check(duration: duration)
    if let plot, !plot.hasSuffix(".svg") { throw ValidationError("--plot takes a name that ends in .svg.") }
  }

  func run(in context: Context) throws {
    let console = output.console(context)
    let file = try save.map { path throws(SystemError) in try FrameRecorder(path) }
    var clock = ClockOffset()
    var times: [(received: Double, stamp: Double, clocks: ClockOffset.Estimate?)] = []
    var sections: [String] = []
    let dropped = try feed.frames(for: duration?.seconds ?? 60, in: context, console) { frame in
      let received = Double(frame.received.microseconds) / 1e6
      if let bridge = frame.frame.bridge { clock.take(bridge, at: received) }
      times.append((received, Double(frame.frame.time.microseconds) / 1e6, clock.estimate))
      sections.append(frame.frame.section)
      try file?.write(frame)
    }
    if dropped > 0 { console.note("\(dropped) frames came faster than they were read, and were left out") }
    // Uses the estimate at each frame, because clocks drift and are set. The first frames come before there is one.
    let first = times.lazy.compactMap(\.clocks).first
    let clocks = times.map { $0.clocks ?? first }
    let frames = zip(times, clocks).map { (arrival: $0.received + ($1?.offset ?? 0), stamp: $0.stamp) }
    let offset = clock.estimate.map {
      ClockOffset.Estimate(offset: $0.offset, uncertainty: clocks.compactMap { $0?.uncertainty }.max() ?? 0)
    }
    guard let statistics = DelayStatistics(frames, of: sections) else {
      throw CommandFailure(.unavailable, "\(times.isEmpty ? "no frame" : "one frame") came, which is too few")
    }
    if let plot {
      let picture = DelayPlot(statistics, frames, title: "Delay of \(feed.feed)")
      try Files.deliver(Array(picture.svg.utf8), to: plot, mode: 0o644)
    }
    if console.isJSON {
      try console.result(
        .object(
          (statistics.json.object ?? []) + [
            .init("clock_offset_ms", .rounded(offset.map { $0.offset * 1000 }, places: 3)),
            .init("uncertainty_ms", .rounded(offset.map { $0.uncertainty * 1000 }, places: 3)),
          ]))
    } else {
      for line in Self.lines(statistics, offset) { try console.result(line) }
    }
  }

  static func lines(_ delay: DelayStatistics, _ offset: ClockOffset.Estimate?) -> [String] {
    func ms(_ seconds: Double) -> String { "\(tenths(seconds * 1000)) ms" }
    func row(_ name: String, _ value: String) -> String { "\(name.aligned(to: 10)) \(value)" }
    var lines = [
      row("frames", "\(delay.count), \(delay.dropped) dropped"),
      row("delay", "min \(ms(delay.least)), mean \(ms(delay.mean)), max \(ms(delay.most))"),
      row("", "p50 \(ms(delay.median)), p95 \(ms(delay.p95)), p99 \(ms(delay.p99))"),
      row("jitter", ms(delay.jitter)), row("gaps", "\(delay.gaps), the longest \(ms(delay.longestGap))"),
      row(
        "clocks",
        offset.map { "\(ms($0.offset)) apart, ± \(ms($0.uncertainty))" } ?? "taken as equal: the feed sends no time"),
    ]
    if delay.hasWholeSeconds {
      lines.append(row("stamps", "whole seconds: a delay seems up to 1 s longer than it is, half a second on average"))
    }
    if let slope = delay.slope {
      let chance = slope.p < 0.001 ? "p < 0.001" : "p = \((slope.p * 1000).rounded() / 1000)"
      lines.append(row("slope", "\((slope.value * 1e5).rounded() / 100) ms a second, \(chance)"))
    }
    let most = delay.histogram.counts.max() ?? 1
    for (index, count) in delay.histogram.counts.enumerated() {
      let begin = ms(delay.histogram.begin + Double(index) * delay.histogram.width).aligned(to: 10, right: true)
      let bar = String(repeating: "#", count: (count * 40 + most - 1) / most)
      lines.append("\(begin)  \("\(count)".aligned(to: 7, right: true))  \(bar)")
    }
    lines.append("Distance travelled in that time (metres: min, mean, max)")
    // On foot, by bicycle, in towns, on roads and motorways.
    for speed in [10.0, 30, 50, 80, 100, 130, 200] {
      let ways = [delay.least, delay.mean, delay.most].map {
        hundredths(DelayStatistics.distance(at: speed, within: $0))
      }
      lines.append(
        "\("\(Int(speed))".aligned(to: 5, right: true)) km/h \(ways.map { $0.aligned(to: 8, right: true) }.joined())")
    }
    return lines
  }
}
