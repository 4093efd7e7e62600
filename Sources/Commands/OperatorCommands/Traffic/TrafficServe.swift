import ArgumentParser
import CommandParts
import Domain
import Encoding
import Glibc
import SystemIO
import Terminal
import Traffic
import TrafficFeed

struct TrafficServe: ContextCommand {
  static let configuration = CommandConfiguration(
    commandName: "serve",
    abstract: "Run a bridge: pass on what publishers see of a road to those who are near.",
    usage: "stepctl traffic serve --ca <file> --cert <file> --key <file> <options>",
    discussion: """
      Publishers and clients show certificates that --ca vouches for; the certificate's common name says what its holder \
      may do. See stepctl-traffic-serve(1).
      """)

  @Option(
    help: ArgumentHelp("Certificates of the authorities for publishers and clients.", valueName: "file"),
    completion: .file(extensions: ["pem"]))
  var ca: String

  @Option(
    help: ArgumentHelp("The bridge's certificate.", valueName: "file"), completion: .file(extensions: ["pem"]))
  var cert: String

  @Option(help: ArgumentHelp("The private key of --cert.", valueName: "file"), completion: .file(extensions: ["key"]))
  var key: String

  @Option(
    help: ArgumentHelp(
      "The authorities' lists of revoked certificates; a newer one counts at once.", valueName: "file"),
    completion: .file(extensions: ["pem"]))
  var crl: String?

  @Option(help: ArgumentHelp("The port to listen at, 0 for any.", valueName: "number"))
  var port: UInt16 = 8443

  @Option(help: ArgumentHelp("The address to listen at (default: all of this computer's).", valueName: "address"))
  var address: String?

  @Option(
    help: ArgumentHelp("Where the sections are (default: each client gets all).", valueName: "file"),
    completion: .file(extensions: ["json"]))
  var map: String?

  @Option(
    help: ArgumentHelp("Publish a recording, again and again, as if it were now.", valueName: "recording"),
    completion: .file(extensions: ["jsonl"]))
  var replay: String?

  @OptionGroup var output: OutputOptions

  /// The interval between two lines of counts.
  private static let pause = Duration.seconds(10)

  func run(in context: Context) throws {
    let console = output.console(context)
    let interruption = try context.interruption()
    if let map { try Self.check(map: map) }
    let recording = try replay.map(Recording.read)
    let revocations = try crl.map { try FileWatch($0, includingContent: true) }
    let process = try BridgeProcess(
      .init(address: address, port: port, authorities: ca, certificate: cert, key: key, map: map, revoked: crl))
    let loop = try EventLoop()
    var isEnding = false
    var replayer = recording.map { Replayer($0, clocks: context.clocks) }

    func play() throws {
      guard let frame = replayer?.next() else { return }
      try process.publish(frame)
      if let due = replayer?.due { loop.schedule(at: due, play) }
    }
    func count() throws {
      try process.count()
      loop.schedule(at: .now + Self.pause, count)
    }
    try loop.watch(process.descriptor) {
      for message in try process.received() {
        switch message {
        case .listening(let port):
          console.note("listening at port \(port)")
          try play()
          if console.isJSON || output.verbose > 0 { loop.schedule(at: .now + Self.pause, count) }
        case .note(let text): console.note(printable(text))
        case .counts(let counts):
          try console.isJSON ? console.result(counts.json) : console.result(Self.line(counts))
          if isEnding { loop.stop() }
        case .failed: break
        }
      }
    }
    if let crl, let revocations { try Self.follow(crl, revocations, for: process, on: loop, console) }
    var ending: Registration?
    ending = try loop.watch(interruption.number) {
      ending?.cancel()
      isEnding = true
      try process.count()
      // A silent program must not block this one.
      loop.schedule(at: .now + .seconds(1)) { loop.stop() }
    }
    try loop.run()
  }

  /// Reads a map here, so that an error can name the mistake; the bridge's program reads it again.
  private static func check(map path: String) throws {
    let bytes = try Files.readRegular(path)
    do throws(FeedFlaw) { _ = try RoadMap(parsing: bytes) } catch {
      throw CommandFailure(.badData, "\(path): \(error.place): \(error.expected)")
    }
  }

  /// Sends the lists of revoked certificates to the bridge whenever their file changes.
  private static func follow(
    _ path: String, _ changes: FileWatch, for bridge: BridgeProcess, on loop: EventLoop, _ console: Console
  ) throws {
    var watching: Registration?
    watching = try loop.watch(changes.number) {
      switch try changes.next() {
      case .none: break
      case .folderGone:
        watching?.cancel()
        console.note("\(path): its folder is gone; no newer list will count")
      case .changed:
        let lists: [UInt8]
        do throws(SystemError) { lists = try Files.readRegular(path) } catch {
          // A file that is being replaced may be missing; it is read when it is there again.
          if error.code != ENOENT { console.note("\(error); the lists before still count") }
          break
        }
        try bridge.revoke(lists)
      }
    }
  }

  /// `2 clients, 1 publisher; 250 frames received, 500 sent, 0 dropped; 0 refused`
  static func line(_ counts: BridgeCounts) -> String {
    return """
      \(counted(counts.clients, "client")), \(counted(counts.publishers, "publisher")); \
      \(counted(counts.received, "frame")) received, \(counts.sent) sent, \(counts.dropped) dropped; \
      \(counts.refused) refused
      """
  }
}

/// A recording that plays as if live, and repeats from its beginning.
struct Replayer {
  private let frames: [RecordedFrame]
  private let clocks: Context.Clocks
  private var index = 0
  /// The start of this round, on both clocks.
  private var begin: (steady: Instant, wall: UnixTime)
  /// Microseconds between the beginnings of two rounds.
  private let round: Int64

  init(_ frames: [RecordedFrame], clocks: Context.Clocks) {
    self.frames = frames
    self.clocks = clocks
    begin = (clocks.steady(), clocks.wall())
    let length = frames.map { $0.received.microseconds - frames[0].received.microseconds }.max() ?? 0
    // The usual time between two frames. A recording of one frame is shown 25 times a second.
    round = length + (frames.count > 1 ? max(length / Int64(frames.count - 1), 1000) : 40_000)
  }

  /// When the next frame is due.
  var due: Instant { begin.steady + .microseconds(offset) }

  private var offset: Int64 { max(0, frames[index].received.microseconds - frames[0].received.microseconds) }

  /// The frame that is due, with its time moved to the present.
  mutating func next() -> FeedFrame {
    var frame = frames[index].frame
    frame.bridge = nil
    frame.time.microseconds += begin.wall.microseconds - frames[0].received.microseconds
    index += 1
    if index == frames.count {
      index = 0
      begin = (begin.steady + .microseconds(round), UnixTime(microseconds: begin.wall.microseconds + round))
    }
    return frame
  }
}
