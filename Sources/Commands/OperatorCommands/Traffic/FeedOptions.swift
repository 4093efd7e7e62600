import ArgumentParser
import CommandParts
import Domain
import Geography
import SystemIO
import Terminal
import Traffic
import TrafficFeed

/// The source of a feed, and the place that its bridge needs.
struct FeedOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp("The feed: wss://HOST[:PORT]/PATH, or file:RECORDING.", valueName: "feed"),
    transform: { try FeedAddress($0) })
  var feed: FeedAddress

  // A southern latitude begins with a hyphen.
  @Option(
    parsing: .unconditional,
    help: ArgumentHelp(
      "The place on the road, for a bridge: latitude and longitude, as in 48.7758,9.1829.",
      valueName: "place"))
  var at: Place?

  @Option(help: ArgumentHelp("Ask for what is within this many metres (default: whole sections).", valueName: "metres"))
  var radius: Double?

  @Option(
    help: ArgumentHelp("Certificates of the authorities for the bridge (default: the system's).", valueName: "file"),
    completion: .file(extensions: ["pem"]))
  var ca: String?

  @Option(
    help: ArgumentHelp("The certificate that the bridge is shown.", valueName: "file"),
    completion: .file(extensions: ["pem"]))
  var cert: String?

  @Option(help: ArgumentHelp("The private key of --cert.", valueName: "file"), completion: .file(extensions: ["key"]))
  var key: String?

  func validate() throws {
    if let radius, !ClientLocation.radii.contains(radius) { throw ValidationError("--radius takes 10 to 1000 metres.") }
    if (cert == nil) != (key == nil) { throw ValidationError("--cert and --key go together.") }
    if case .recording = feed, at != nil || radius != nil || ca != nil || cert != nil {
      throw ValidationError("--at, --radius, --ca, --cert and --key are for bridges.")
    }
  }

  /// The allowed duration of a feed, seconds.
  private static let durations = 1.0...86_400

  /// - Parameter hint: how else a bridge can get a place; nil if the place was given.
  func check(duration: TimeSpan?, placeBy hint: String? = "give --at") throws {
    if let duration, !Self.durations.contains(duration.seconds) {
      throw ValidationError("--for takes 1 to 86400 seconds.")
    }
    if case .bridge = feed, at == nil, let hint { throw ValidationError("A bridge needs a place: \(hint).") }
  }

  /// Passes on each frame when it comes, until the time is over or the recording ends.
  ///
  /// - Returns: how many frames were dropped because they came faster than they were read.
  func frames(
    for seconds: Double, in context: Context, _ console: Console, _ take: (RecordedFrame) throws -> Void
  ) throws -> Int {
    switch feed {
    case .recording(let path):
      let frames = try Recording.read(path)
      for frame in frames where frame.received.seconds(since: frames[0].received) <= seconds { try take(frame) }
      return 0
    case .bridge(let host, let port, let path):
      guard let at else { return 0 }
      let connection = try FeedConnection(
        host: host, port: port, path: path, .init(authorities: ca, certificate: cert, key: key),
        interruption: context.interruption())
      let begin = context.clocks.steady()
      let end = begin + .milliseconds(Int64(seconds * 1000))
      var nextLocation = begin
      var isConnected = false
      var dropped = 0
      while context.clocks.steady() < end {
        if isConnected, context.clocks.steady() >= nextLocation {
          let now = Double(context.clocks.wall().microseconds) / 1e6
          try connection.tell(ClientLocation(time: now, position: at.coordinate, accuracy: 1, radius: radius))
          nextLocation = context.clocks.steady() + .seconds(1)
        }
        switch try connection.next(until: isConnected ? min(nextLocation, end) : end) {
        case .connected:
          isConnected = true
          console.detail("\(HostPort(host: host, port: port)): connected")
        case .frame(let bytes, let received, let left):
          dropped += left
          try take(RecordedFrame(received: received, frame: FeedFrame(parsing: bytes)))
        case nil: break
        }
      }
      return dropped
    }
  }
}

/// An event of a feed.
enum FeedEvent {
  case connected
  /// A frame, and how many frames were dropped before it.
  case frame(RecordedFrame, dropped: Int)
  /// The recording has ended.
  case ended(String)
}

/// A feed on an event loop, until it is stopped.
final class RunningFeed {
  private var connection: Registration?
  /// The next frame of a recording, or the next message for a bridge.
  private var next: Registration?

  fileprivate func connect(_ registration: Registration) { connection = registration }
  fileprivate func play(_ registration: Registration) { next = registration }

  func end() {
    connection?.cancel()
    next?.cancel()
  }
}

extension FeedOptions {
  /// Passes on events when they happen. A recording runs on its own clock.
  ///
  /// - Parameter place: the place that the bridge is told.
  func start(
    at place: Coordinate?, on loop: EventLoop, in context: Context, _ interruption: Interruption,
    _ take: @escaping (FeedEvent) throws -> Void
  ) throws -> RunningFeed {
    switch feed {
    case .recording(let path):
      var frames = try RecordingLines(path)
      let feed = RunningFeed()
      let begin = context.clocks.steady()
      var next = try frames.next()
      let first = next?.received.microseconds ?? 0
      func play() throws {
        while let frame = next {
          let due = begin + .microseconds(frame.received.microseconds - first)
          if due > context.clocks.steady() { return feed.play(loop.schedule(at: due, play)) }
          try take(.frame(frame, dropped: 0))
          next = try frames.next()
        }
        try take(.ended("the recording is at its end"))
      }
      feed.play(loop.schedule(at: begin, play))
      return feed
    case .bridge(let host, let port, let path):
      let feed = RunningFeed()
      guard let place else { return feed }
      let connection = try FeedConnection(
        host: host, port: port, path: path, .init(authorities: ca, certificate: cert, key: key),
        interruption: interruption)
      func tell() throws {
        let now = Double(context.clocks.wall().microseconds) / 1e6
        try connection.tell(ClientLocation(time: now, position: place, accuracy: 1, radius: radius))
        feed.play(loop.schedule(at: .now + .seconds(1), tell))
      }
      feed.connect(
        try loop.watch(connection.descriptor) {
          for event in try connection.received() {
            switch event {
            case .connected:
              try take(.connected)
              try tell()
            case .frame(let bytes, let received, let left):
              try take(.frame(RecordedFrame(received: received, frame: FeedFrame(parsing: bytes)), dropped: left))
            }
          }
        })
      return feed
    }
  }
}
