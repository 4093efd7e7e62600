import Domain
import Encoding
import Geography

/// What a bridge knows of the road, and what each of its clients is to get of it.
///
/// Pure: time is passed in, seconds since 1970 on the bridge's clock. FEED.md has the rules. Of a client it knows the
/// last place, as long as that counts.
public struct Bridge: Sendable {
  private let map: RoadMap?
  /// The newest frame of each section, in the order in which the sections were first published.
  private var frames: [RenderedFrame] = []
  /// The part of each frame that decides which clients get it. It holds plain values, because the bridge reads it for
  /// each client and each frame.
  private var news: [News] = []
  private var places: [String: Int] = [:]
  private var serial: UInt64 = 0

  /// Seconds for which a client's place counts.
  public static let locationMemory = 5.0
  /// Seconds after which a frame is no news any more.
  public static let freshness = 1.0

  /// - Parameter map: nil where each client gets every section.
  public init(map: RoadMap?) { self.map = map }

  private struct News {
    /// Counts all frames, and those of the section.
    var serial: UInt64
    var number: Int
    var received: Double
  }

  /// Takes a section's newest frame.
  ///
  /// - Returns: false where it is longer than `FeedFrame.longest` as clients would get it; then nothing changes.
  @discardableResult
  public mutating func take(_ frame: FeedFrame, at now: Double) -> Bool {
    let rendered = RenderedFrame(frame, serial: serial + 1, received: now)
    guard rendered.most <= FeedFrame.longest else { return false }
    serial += 1
    if let place = places[frame.section] {
      frames[place] = rendered
      news[place] = News(serial: serial, number: news[place].number + 1, received: now)
    } else {
      places[frame.section] = frames.count
      frames.append(rendered)
      news.append(News(serial: serial, number: 1, received: now))
    }
    return true
  }

  // MARK: - Clients

  /// A client, as far as the bridge has to know it.
  public struct Client: Sendable {
    /// The sections that it may see; nil for all.
    fileprivate let allowed: Set<String>?
    fileprivate var location: ClientLocation?
    fileprivate var heard = -Double.infinity
    /// The echo as it is sent: the client's stamp, and when it came.
    fileprivate var echo: [UInt8] = []
    /// The sections around it; nil for all.
    fileprivate var around: Set<String>?
    /// For each section, in the bridge's order: whether the client gets it, and the number of the last frame it got.
    fileprivate var sections: [(isWanted: Bool, seen: Int)] = []
    fileprivate var rate = RateLimit(perSecond: 10, burst: 20)
    /// How many frames it was too slow for.
    public fileprivate(set) var dropped = 0

    public init(allowed: Set<String>?) { self.allowed = allowed }

    fileprivate func wants(_ section: String) -> Bool {
      allowed?.contains(section) ?? true && around?.contains(section) ?? true
    }
  }

  /// Takes what a client says of its place.
  ///
  /// - Returns: false when it says so more often than ten times a second.
  public func place(_ client: inout Client, at location: ClientLocation, now: Double) -> Bool {
    guard client.rate.take(at: now) else { return false }
    client.around = map?.sections(at: location.position, radius: location.radius)
    for index in client.sections.indices {
      client.sections[index].isWanted = client.wants(frames[index].section)
      // The client was away, not slow: the frames of that time do not count as dropped.
      if now - client.heard > Self.locationMemory { client.sections[index].seen = 0 }
    }
    client.location = location
    client.heard = now
    client.echo = Array(",\"echo\":\(JSON.number(location.time).text),\"echoReceived\":".utf8)
    client.echo.append(stamp: now)
    client.echo += "}}".utf8
    return true
  }

  /// Whether there is a frame that a client is to get.
  public func hasNews(for client: inout Client, now: Double) -> Bool { next(for: &client, now: now) != nil }

  /// Writes a frame that a client is to get: of those that it does not have, the oldest.
  ///
  /// - Returns: whether there is one more; nil where there was none.
  public func write(for client: inout Client, now: Double, to outgoing: inout OutgoingFrame) -> Bool? {
    guard let next = next(for: &client, now: now), let location = client.location else { return nil }
    outgoing.write(frames[next.place], around: location, echo: client.echo, sent: now)
    let (seen, number) = (client.sections[next.place].seen, news[next.place].number)
    if seen > 0 { client.dropped += number - seen - 1 }
    client.sections[next.place].seen = number
    return next.count > 1
  }

  /// The place of that frame, and how many there are that a client is to get.
  private func next(for client: inout Client, now: Double) -> (place: Int, count: Int)? {
    let age = now - client.heard
    // A clock that was set back makes it negative.
    guard age >= 0, age <= Self.locationMemory else { return nil }
    while client.sections.count < frames.count {
      client.sections.append((client.wants(frames[client.sections.count].section), 0))
    }
    var (oldest, count) = (-1, 0)
    for place in news.indices where client.sections[place].isWanted {
      let one = news[place]
      guard one.number > client.sections[place].seen, abs(now - one.received) <= Self.freshness else { continue }
      count += 1
      if oldest < 0 || one.serial < news[oldest].serial { oldest = place }
    }
    return count > 0 ? (oldest, count) : nil
  }
}

/// A frame on its way out. Clients that get the same frame get the same bytes but for the stamps at its end, so those
/// alone are written for each.
public struct OutgoingFrame: Sendable {
  /// The frame, behind the free space.
  public private(set) var bytes: [UInt8]
  /// Bytes at the beginning that are left to whoever sends it.
  private let space: Int
  /// Which whole frame is in `bytes`, and where its stamps begin.
  private var whole: (serial: UInt64, end: Int)?

  public init(space: Int) {
    self.space = space
    bytes = [UInt8](repeating: 0, count: space)
  }

  /// - Parameter body: gets the frame, in front of which there is the free space.
  /// - Returns: what that returns.
  public mutating func withPayload(_ body: (UnsafeMutablePointer<UInt8>, Int) -> Int32) -> Int32 {
    let length = bytes.count - space
    // A library asks for some space, so the array is not empty and has an address.
    return bytes.withUnsafeMutableBufferPointer { body($0.baseAddress! + space, length) }
  }

  /// - Parameter echo: what follows the time of sending, to the end.
  fileprivate mutating func write(
    _ frame: RenderedFrame, around location: ClientLocation, echo: [UInt8], sent: Double
  ) {
    if location.radius == nil, let whole, whole.serial == frame.serial {
      bytes.removeLast(bytes.count - whole.end)
    } else {
      bytes.removeLast(bytes.count - space)
      frame.write(around: location, to: &bytes)
      whole = location.radius == nil ? (frame.serial, bytes.count) : nil
    }
    bytes.append(stamp: sent)
    bytes += echo
  }
}

/// A frame as it is sent: each object was written once, whoever gets it.
private final class RenderedFrame: Sendable {
  let section: String
  let serial: UInt64
  private let head: [UInt8]
  private let objects: [UInt8]
  /// Where each object is, and where it is in `objects`, with the comma behind it.
  private let places: [(position: Coordinate, bytes: Range<Int>)]
  private let tail: [UInt8]

  init(_ frame: FeedFrame, serial: UInt64, received: Double) {
    section = frame.section
    self.serial = serial
    let (seconds, microseconds) = frame.time.microseconds.quotientAndRemainder(dividingBy: 1_000_000)
    let nanoseconds = String(microseconds * 1000)
    let padding = String(repeating: "0", count: max(0, 9 - nanoseconds.count))
    head = Array(
      """
      {"id":"\(serial)","section":\(JSON.string(frame.section).text),"timestampSecs":"\(seconds)",\
      "timestampNsecs":"\(nanoseconds)","timestampFull":"\(seconds).\(padding)\(nanoseconds)","vehicles":[
      """.utf8)
    var objects: [UInt8] = []
    places = frame.objects.map { object in
      let begin = objects.count
      objects += object.json.bytes
      objects.append(UInt8(ascii: ","))
      return (object.position, begin..<objects.count)
    }
    self.objects = objects
    var tail = Array("],\"bridge\":{\"received\":".utf8)
    tail.append(stamp: received)
    self.tail = tail + ",\"sent\":".utf8
  }

  /// The bytes of the whole, and of the longest stamps behind it.
  var most: Int { head.count + objects.count + tail.count + 160 }

  /// Appends all up to the time of sending.
  func write(around location: ClientLocation, to bytes: inout [UInt8]) {
    bytes += head
    let begin = bytes.count
    if let radius = location.radius {
      let plane = LocalPlane(at: location.position)
      for place in places where plane.point(of: place.position).length <= radius { bytes += objects[place.bytes] }
    } else {
      bytes += objects
    }
    // The last comma.
    if bytes.count > begin { bytes.removeLast() }
    bytes += tail
  }
}

extension [UInt8] {
  /// Appends seconds to the microsecond, as `1700000000.250000`.
  fileprivate mutating func append(stamp time: Double) {
    var left = UInt64(Swift.max(0, (time * 1e6).rounded()))
    var begin = count
    // From its end on.
    for place in 0... {
      if place == 6 { append(UInt8(ascii: ".")) }
      append(UInt8(ascii: "0") + UInt8(truncatingIfNeeded: left % 10))
      left /= 10
      if place >= 6, left == 0 { break }
    }
    var end = count - 1
    while begin < end {
      swapAt(begin, end)
      begin += 1
      end -= 1
    }
  }
}

/// How often something may be done: a bucket that fills up steadily, and out of which each time takes some.
public struct RateLimit: Sendable {
  private let perSecond: Double
  private let burst: Double
  private var left: Double
  private var last = -Double.infinity

  public init(perSecond: Double, burst: Double) {
    self.perSecond = perSecond
    self.burst = burst
    left = burst
  }

  /// - Parameters:
  ///   - amount: how much of it is done at once.
  ///   - now: seconds. A clock that was set back takes nothing away.
  public mutating func take(_ amount: Double = 1, at now: Double) -> Bool {
    left = min(burst, left + max(0, now - last) * perSecond)
    last = now
    guard left >= amount else { return false }
    left -= amount
    return true
  }
}

/// What a certificate's common name lets its holder do at a bridge: `publisher:S40-50,S50-60`, `client`, or
/// `client:S40-50`.
public enum BridgeRole: Equatable, Sendable {
  /// Publishes these sections.
  case publisher(Set<String>)
  /// Gets these sections; nil for all.
  case client(Set<String>?)

  public init?(commonName name: String) {
    let parts = name.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
    let sections = parts.count < 2 ? [] : parts[1].split(separator: ",", omittingEmptySubsequences: false)
    guard sections.allSatisfy({ !$0.isEmpty }) else { return nil }
    switch (parts[0], parts.count) {
    case ("publisher", 2): self = .publisher(Set(sections.map(String.init)))
    case ("client", 1): self = .client(nil)
    case ("client", 2): self = .client(Set(sections.map(String.init)))
    default: return nil
    }
  }

  /// What a request is for.
  public enum Place: Equatable, Sendable {
    case publisher(of: String)
    case client(Set<String>?)
  }

  /// - Parameter path: of the request: `/traffic` for clients, `/publish/SECTION` for publishers.
  /// - Returns: nil for a path that does not exist, or that the role may not use.
  public func place(at path: String) -> Place? {
    switch self {
    case .client(let sections): return path == "/traffic" ? .client(sections) : nil
    case .publisher(let sections):
      let prefix = "/publish/"
      guard path.hasPrefix(prefix) else { return nil }
      let section = String(path.dropFirst(prefix.count))
      return sections.contains(section) ? .publisher(of: section) : nil
    }
  }
}
