import ArgumentParser
import Domain
import Encoding
import Terminal
import Traffic

struct TrafficDelay: ContextCommand {
  static let configuration = CommandConfiguration(
    commandName: "delay",
    abstract: "Say how late a feed is, and how far that is on the road.",
    usage: "stepctl traffic delay <recording>",
    discussion: """
      The delay of a frame is from the time that it is stamped with to when it was received. Where the bridge says its own \
      time, the difference of the clocks is taken out of it.
      """)

  @Argument(
    help: ArgumentHelp("A recording of a feed, a frame a line.", valueName: "recording"),
    completion: .file(extensions: ["jsonl"]))
  var recording: String

  @OptionGroup var output: OutputOptions

  func run(in context: Context) throws {
    let console = output.console(context)
    let frames = try Recording.read(recording)
    var clock = ClockOffset()
    for frame in frames {
      if let bridge = frame.frame.bridge { clock.take(bridge, at: Double(frame.received.microseconds) / 1e6) }
    }
    let offset = clock.estimate
    let delays = frames.map { frame in
      (
        arrival: Double(frame.received.microseconds) / 1e6 + (offset?.offset ?? 0),
        stamp: Double(frame.frame.time.microseconds) / 1e6
      )
    }
    guard let statistics = DelayStatistics(delays) else {
      throw CommandFailure(.badData, "\(recording): one frame is too few")
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
        offset.map { "\(ms($0.offset)) apart, ± \(ms($0.uncertainty))" } ?? "taken for the same: the feed says no time"),
    ]
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
    lines.append("In that time something goes (metres: min, mean, max)")
    for speed in stride(from: 10.0, through: 200, by: 10)
    where speed <= 50 || speed.truncatingRemainder(dividingBy: 50) == 0 {
      let ways = [delay.least, delay.mean, delay.most].map {
        hundredths(DelayStatistics.distance(at: speed, within: $0))
      }
      lines.append(
        "\("\(Int(speed))".aligned(to: 5, right: true)) km/h \(ways.map { $0.aligned(to: 8, right: true) }.joined())")
    }
    return lines
  }

  private static func hundredths(_ value: Double) -> String {
    let count = Int64((abs(value) * 100).rounded())
    return "\(value < 0 && count > 0 ? "-" : "")\(count / 100).\(count % 100 < 10 ? "0" : "")\(count % 100)"
  }
}
