import Domain
import Encoding
import Geography
import Positioning
import StepController
import StepProtocol
import StepdConfiguration
import Synchronization
import SystemIO
import Traffic
import TrafficFeed

enum FeedEvent: Sendable {
  /// The seconds since 1970 at an instant, as sent to the bridge on this connection.
  case connected(wall: Double, at: Instant)
  case frame(FeedFrame, at: Instant)
  /// Nil if the watch has ended because nobody asks any more.
  case lost(String?)
}

/// Watches the traffic feed for some time after each request. Its own thread starts stepctl-traffic and reads its
/// frames. When stepctl-traffic ends, the thread starts it again, after half a second at first, and at most half a
/// minute later on.
///
/// Frames that the loop has no time for are dropped.
final class RoadListener: Sendable {
  /// Where the bridge is to watch, and until when.
  struct Wish: Sendable {
    let until: Instant
    let position: Coordinate
    /// Metres.
    let error: Double
  }

  /// The number of frames that may wait for the loop: a tick's worth of several sections.
  private static let capacity = 8

  let feed: ControllerFile.Feed
  let events: Mailbox<FeedEvent>
  private let wish = Mutex<Wish?>(nil)
  private let wished: Wakeup
  private let waiting = Atomic(0)
  private let thread: WorkerThread

  /// Starts the thread.
  init(_ feed: ControllerFile.Feed) throws {
    self.feed = feed
    events = try Mailbox()
    wished = try Wakeup()
    thread = try WorkerThread()
    try thread.start { [self] in run() }
  }

  /// Watches the road. A request that starts a new watch does not wait for the next retry.
  func watch(_ road: Wish) {
    let isNew = wish.withLock { wish in
      defer { wish = road }
      return wish.map { $0.until <= .now } ?? true
    }
    if isNew { wished.signal() }
  }

  /// Must be called for each frame that the loop has taken.
  func taken() { waiting.subtract(1, ordering: .relaxed) }

  /// Ends the thread and stepctl-traffic, and waits for that.
  func close() { thread.close() }

  // MARK: - The thread

  private func run() {
    var reported: String?
    let descriptors = [wished.number, thread.stop.number]
    while let ready = try? waitReadable(descriptors, until: nil), !ready[1] {
      wished.clear()
      var backoff = Backoff()
      while current != nil {
        let begun = Instant.now
        do {
          switch feed.address {
          case .bridge(let host, let port, let path): try watch(host, port, path)
          case .recording(let path): try play(path)
          }
          // The watch is over: nobody asks any more.
          events.post(.lost(nil))
        } catch let error as any Failure where error.isInterruption {
          return
        } catch {
          let reason = (error as? any Failure)?.description ?? "\(error)"
          // The same reason is not reported twice in a row.
          let lasted = begun.duration(to: .now)
          events.post(.lost(reason == reported && lasted < Backoff.longest ? nil : reason))
          reported = reason
          let due = Instant.now + backoff.next(afterLasting: lasted, chance: Double.random(in: 0...1))
          guard let ready = try? waitReadable(descriptors, until: due), !ready[1] else { return }
          if ready[0] {
            wished.clear()
            backoff = Backoff()
          }
        }
      }
    }
  }

  /// The present wish; nil when its time is over.
  private var current: Wish? {
    wish.withLock { wish in
      if let now = wish, now.until <= .now { wish = nil }
      return wish
    }
  }

  private func watch(_ host: String, _ port: UInt16, _ path: String) throws {
    let connection = try FeedConnection(
      host: host, port: port, path: path, feed.credentials, interruption: thread.stop)
    let (wall, begun) = (Double(WallClock.microseconds) / 1e6, Instant.now)
    var isConnected = false
    var nextLocation = begun
    var lastFrame = begun
    // A program that neither sends nor ends counts as lost.
    let timeouts = (connecting: Duration.seconds(15), silence: Duration.seconds(5))
    while let wish = current {
      let now = Instant.now
      guard begun.duration(to: now) < timeouts.connecting || isConnected,
        lastFrame.duration(to: now) < timeouts.silence || !isConnected
      else { throw FeedSilence(name: "\(HostPort(host: host, port: port))") }
      if isConnected, now >= nextLocation {
        let time = wall + begun.duration(to: now).inSeconds
        try connection.tell(
          ClientLocation(time: time, position: wish.position, accuracy: wish.error, radius: feed.radius))
        nextLocation = now + .seconds(1)
      }
      switch try connection.next(until: isConnected ? nextLocation : now + .seconds(1)) {
      case .connected:
        isConnected = true
        lastFrame = .now
        events.post(.connected(wall: wall, at: begun))
      case .frame(let bytes, _, _):
        lastFrame = .now
        post(try FeedFrame(parsing: bytes, axes: feed.axes))
      case nil: break
      }
    }
  }

  /// Plays a recording as if it happened now.
  private func play(_ path: String) throws {
    let lines = try Files.readRegular(path, limit: 1 << 28).split(separator: UInt8(ascii: "\n"))
    let begun = Instant.now
    let wall = Double(WallClock.microseconds) / 1e6
    var first: UnixTime?
    events.post(.connected(wall: wall, at: begun))
    for line in lines {
      let recorded = try RecordedFrame(parsing: Array(line), axes: feed.axes)
      let start = first ?? recorded.received
      first = start
      let due = begun + .microseconds(recorded.received.microseconds - start.microseconds)
      if try waitReadable([thread.stop.number], until: due)[0] { throw FeedError.interrupted }
      guard current != nil else { return }
      var frame = recorded.frame
      frame.time.microseconds += Int64(wall * 1e6) - start.microseconds
      frame.bridge = nil
      post(frame)
    }
    throw RecordingEnd(path: path)
  }

  private func post(_ frame: FeedFrame) {
    guard waiting.load(ordering: .relaxed) < Self.capacity else { return }
    waiting.add(1, ordering: .relaxed)
    events.post(.frame(frame, at: .now))
  }
}

private struct FeedSilence: Failure {
  let name: String
  var description: String { "\(name): the bridge sends nothing" }
  var exitStatus: ExitStatus { .unavailable }
}

private struct RecordingEnd: Failure {
  let path: String
  var description: String { "\(path): the recording has ended" }
  var exitStatus: ExitStatus { .noInput }
}

enum ReceiverEvent: Sendable {
  /// The time is of a clock that begins with each connection.
  case fix(Fix?)
  /// Nil if the same reason came before.
  case lost(String?)
}

/// Reads the vehicle's place from gpsd as long as stepd runs, because a standing vehicle has its heading from the last
/// drive. It reconnects when the connection is lost.
final class ReceiverListener: Sendable {
  let events: Mailbox<ReceiverEvent>
  private let thread: WorkerThread

  init(_ address: HostPort) throws {
    events = try Mailbox()
    thread = try WorkerThread()
    try thread.start { [events, stop = thread.stop] in Self.run(address, events, stop) }
  }

  func close() { thread.close() }

  private static func run(_ address: HostPort, _ events: Mailbox<ReceiverEvent>, _ stop: Interruption) {
    var backoff = Backoff()
    var reported: String?
    while true {
      let begun = Instant.now
      do throws(GPSError) {
        let gpsd = try GPSConnection(address, stop)
        reported = nil
        var due = begun
        while let ready = try? waitReadable([gpsd.descriptor, stop.number], until: nil), !ready[1] {
          for report in try gpsd.received(at: begun.duration(to: .now).inSeconds) {
            // Some receivers report ten times a second.
            guard let fix = fix(report), due <= .now else { continue }
            due = .now + .milliseconds(400)
            events.post(.fix(fix))
          }
        }
        return
      } catch {
        if error == .interrupted { return }
        events.post(.lost(error.description == reported ? nil : error.description))
        reported = error.description
      }
      let due = Instant.now + backoff.next(afterLasting: begun.duration(to: .now), chance: .random(in: 0...1))
      if (try? waitReadable([stop.number], until: due)[0]) ?? true { return }
    }
  }

  /// - Returns: nil for a report without a place; `.some(nil)` for a report that there is no fix.
  private static func fix(_ report: GPSReport) -> Fix?? {
    switch report {
    case .fix(let fix, _): fix
    case .noFix: .some(nil)
    case .receivers, .error, .other: nil
    }
  }
}

extension VehiclePlace.Fix {
  /// Above this speed a receiver knows its course, metres per second.
  private static let leastSpeed = 2.0

  /// - Returns: nil if the receiver does not say how good its place is.
  init?(_ fix: Fix) {
    guard let error = fix.accuracy else { return nil }
    let moves = fix.speed.map { $0 >= Self.leastSpeed } ?? false
    self.init(position: fix.position, error: error, course: moves ? fix.course.map { $0 * .pi / 180 } : nil)
  }
}

/// Where the vehicle stands, for the events: the last place of the receiver that could be relied on.
struct StandingPlace {
  private var settling = Settling()
  private var last: (fix: Fix, heard: Instant)?

  mutating func take(_ fix: Fix?, at now: Instant) {
    // Without a speed nobody knows whether the vehicle stands.
    guard let fix, let speed = fix.speed, !fix.isSimulated else { return settling.take(nil) }
    // Places on the way would make a track.
    if speed >= Way.walking {
      (settling, last) = (Settling(), nil)
      return
    }
    settling.take(fix)
    if case .settled(let fix) = settling.state { last = (fix, now) }
  }

  /// - Returns: nil if it is not known, or is too old to be told.
  func place(at now: Instant) -> ReportedPlace? {
    guard let (fix, heard) = last else { return nil }
    return ReportedPlace(
      latitude: fix.position.latitude, longitude: fix.position.longitude, error: fix.accuracy ?? Settling.assumed,
      age: heard.duration(to: now).inSeconds)
  }
}

extension ControllerFile.Feed {
  /// Reads what otherwise only a connection reads.
  func check() throws {
    switch address {
    case .recording(let path):
      let lines = try Files.readRegular(path, limit: 1 << 28).split(separator: UInt8(ascii: "\n"))
      if let first = lines.first { _ = try RecordedFrame(parsing: Array(first), axes: axes) }
    case .bridge:
      _ = try ChildProcess.program("stepctl-traffic")
      for file in [credentials.authorities, credentials.certificate, credentials.key] {
        if let file { _ = try Files.readRegular(file) }
      }
    }
  }
}
