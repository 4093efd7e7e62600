import ArgumentParser
import Domain
import Geography
import SystemIO
import Terminal
import Traffic
import TrafficFeed

/// Where a feed comes from, and what its bridge has to be told.
struct FeedOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp("The feed: wss://HOST[:PORT]/PATH, or file:RECORDING.", valueName: "feed"),
    transform: { try FeedAddress($0) })
  var feed: FeedAddress

  // A place in the south begins with a hyphen.
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

  /// Seconds for which a command may receive a feed.
  private static let durations = 1.0...86_400

  /// - Parameter hint: what else says where to be, for a bridge; nil where that was given.
  func check(duration: TimeSpan?, placeBy hint: String? = "give --at") throws {
    if let duration, !Self.durations.contains(duration.seconds) {
      throw ValidationError("--for takes 1 to 86400 seconds.")
    }
    if case .bridge = feed, at == nil, let hint { throw ValidationError("A bridge needs a place: \(hint).") }
  }

  /// Gives each frame as it comes, until the time is over or the recording ends.
  ///
  /// - Returns: how many frames were left out because they came faster than they were read.
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
          console.detail("\(host):\(port): connected")
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

/// What happens to a feed.
enum FeedEvent {
  case connected
  /// A frame, and how many were left out before it.
  case frame(RecordedFrame, dropped: Int)
  /// The recording is at its end.
  case ended(String)
}

/// A feed that comes on a loop, until it is told to end.
final class RunningFeed {
  private var connection: Registration?
  /// What comes next of a recording, or is to be told to a bridge.
  private var next: Registration?

  fileprivate func connect(_ registration: Registration) { connection = registration }
  fileprivate func play(_ registration: Registration) { next = registration }

  func end() {
    connection?.cancel()
    next?.cancel()
  }
}

extension FeedOptions {
  /// Gives what happens as it happens. A recording runs on its own clock.
  ///
  /// - Parameter place: what a bridge is told.
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

/// A place as people type it.
struct Place: ExpressibleByArgument {
  let coordinate: Coordinate

  init?(argument: String) {
    let parts = argument.split(separator: ",", omittingEmptySubsequences: false)
    guard parts.count == 2, let latitude = Double(parts[0]), let longitude = Double(parts[1]),
      let coordinate = Coordinate(latitude: latitude, longitude: longitude)
    else { return nil }
    self.coordinate = coordinate
  }
}
