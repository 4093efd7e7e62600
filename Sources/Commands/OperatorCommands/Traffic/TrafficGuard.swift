import ArgumentParser
import Certificates
import CommandParts
import Domain
import Encoding
import Glibc
import SystemIO
import Terminal
import Traffic

struct TrafficGuardTrial: ContextCommand {
  static let configuration = CommandConfiguration(
    commandName: "guard",
    abstract: "Score the guard on a recorded road.",
    usage: "stepctl traffic guard <recording> --scene <file>",
    discussion: """
      The recording is taken as the truth. The guard gets each frame when it was received, or later if the scene says \
      so, and is asked about each step 50 times a second. See stepctl-traffic-guard(1) for what is counted.
      """)

  @Argument(
    help: ArgumentHelp("A recording of a feed, one frame on each line.", valueName: "recording"),
    completion: .file(extensions: ["jsonl"]))
  var recording: String

  @Option(
    help: ArgumentHelp("Where the vehicle stands, and how much worse to make the feed.", valueName: "file"),
    completion: .file(extensions: ["json"]))
  var scene: String

  @OptionGroup var output: OutputOptions

  func run(in context: Context) throws {
    let console = output.console(context)
    let guardScene = try GuardScene(reading: scene)
    let frames = try Recording.read(recording)
    if !frames.contains(where: guardScene.isNear) {
      console.note("nothing in the recording is within 50 km of the vehicle: are latitude and longitude swapped?")
    }
    for score in guardScene.score(frames) {
      try console.isJSON ? console.result(score.json) : console.result(Self.line(score))
    }
  }

  /// `left   14 approaches, 0 gaps; 2 departures, 1 gap; held 12.4 %, needless 0.3 %, blind 0.0 % of 60 s`
  static func line(_ score: StepScore) -> String {
    func part(_ seconds: Double) -> String { "\(tenths(100 * seconds / max(score.time, 0.001))) %" }
    let missed = score.gapTimes.isEmpty ? "" : " (at \(score.gapTimes.map(tenths).joined(separator: ", ")) s)"
    return """
      \(score.step.description.aligned(to: 6)) \(score.approaches == 1 ? "1 approach" : "\(score.approaches) approaches"), \
      \(counted(score.gaps, "gap"))\(missed); \(counted(score.departures, "departure")), \
      \(counted(score.departureGaps, "gap")); held \(part(score.held)), needless \(part(score.needless)), \
      blind \(part(score.blind)) of \(Int(score.time.rounded())) s
      """
  }
}

extension GuardScene {
  init(reading path: String) throws {
    let bytes = try Files.readRegular(path)
    do throws(FeedFlaw) { try self.init(parsing: bytes) } catch {
      throw CommandFailure(.badData, "\(path): \(error.place): \(error.expected)")
    }
  }
}

/// Writes a recording, frame by frame, into a new file that only its owner may read.
final class FrameRecorder {
  private let file: Descriptor
  private let path: String

  init(_ path: String) throws(SystemError) {
    file = try Descriptor.open(path, O_WRONLY | O_CREAT | O_EXCL, mode: 0o600)
    self.path = path
  }

  func write(_ frame: RecordedFrame) throws(SystemError) {
    try file.write(Array((frame.json.text + "\n").utf8), path)
  }
}

/// A recording of a feed, in the format of FEED.md.
enum Recording {
  /// The size limit in bytes: an hour of a busy road.
  static let longest = 1 << 30

  static func read(_ path: String) throws -> [RecordedFrame] {
    var lines = try RecordingLines(path)
    var frames: [RecordedFrame] = []
    while let frame = try lines.next() { frames.append(frame) }
    return frames
  }
}

/// The frames of a recording, each read on demand: an hour of a busy road takes minutes.
struct RecordingLines {
  private let path: String
  private let lines: [ArraySlice<UInt8>]
  private var index = 0

  init(_ path: String) throws {
    self.path = path
    lines = try Files.readRegular(path, limit: Recording.longest).split(separator: UInt8(ascii: "\n"))
    guard !lines.isEmpty else { throw CommandFailure(.badData, "\(path): there is no frame in it") }
  }

  mutating func next() throws -> RecordedFrame? {
    guard index < lines.count else { return nil }
    index += 1
    do throws(FeedFlaw) { return try RecordedFrame(parsing: Array(lines[index - 1])) } catch {
      throw CommandFailure(.badData, "\(path), line \(index): \(error.place): \(error.expected)")
    }
  }
}
