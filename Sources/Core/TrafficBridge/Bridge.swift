import Domain
import Encoding
import Geography
public import Traffic

/// The bridge's knowledge of the road, and its choice of what each client gets.
///
/// It has no clock of its own: callers pass the time, in seconds since 1970 on the bridge's clock. FEED.md has the
/// rules. It stores no more of a client's movements than the last place.
public struct Bridge: Sendable {
  private let map: RoadMap?
  /// The newest frame of each section. The sections are in the order in which they were first published.
  private var frames: [RenderedFrame] = []
  /// For each frame, the values that decide which clients get it. They are plain values, because the bridge reads them
  /// for each client and each frame.
  private var news: [News] = []
  private var places: [String: Int] = [:]
  private var serial: UInt64 = 0

  /// How long a client's place counts, seconds.
  public static let locationMemory = 5.0
  /// The age at which a frame is no longer sent, seconds.
  public static let freshness = 1.0

  /// - Parameter map: nil if each client gets every section.
  public init(map: RoadMap?) { self.map = map }

  private struct News {
    /// `serial` counts all frames, and `number` those of the section.
    var serial: UInt64
    var number: Int
    var received: Double
  }

  /// Accepts a section's newest frame.
  ///
  /// - Returns: false if the frame, in the form that clients get, is longer than `FeedFrame.longest`; then nothing
  ///   changes.
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

  /// What the bridge must know about a client.
  public struct Client: Sendable {
    /// The sections that the client may see; nil for all.
    fileprivate let allowed: Set<String>?
    fileprivate var location: ClientLocation?
    fileprivate var heard = -Double.infinity
    /// The rendered echo: the client's stamp, and when it arrived.
    fileprivate var echo: [UInt8] = []
    /// The sections around the client; nil for all.
    fileprivate var around: Set<String>?
    /// For each section, in the bridge's order: whether the client gets it, and the number of the last frame it got.
    fileprivate var sections: [(isWanted: Bool, seen: Int)] = []
    /// Seconds.
    fileprivate var locations = Allowance(burst: 20, interval: 0.1)
    /// How many frames the client was too slow for.
    public fileprivate(set) var dropped = 0

    public init(allowed: Set<String>?) { self.allowed = allowed }

    fileprivate func wants(_ section: String) -> Bool {
      allowed?.contains(section) ?? true && around?.contains(section) ?? true
    }
  }

  /// Records a client's place.
  ///
  /// - Returns: false if the client sends it more often than ten times a second.
  public func place(_ client: inout Client, at location: ClientLocation, now: Double) -> Bool {
    guard client.locations.take(at: now) else { return false }
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

  /// Whether there is a frame that the client should get.
  public func hasNews(for client: inout Client, now: Double) -> Bool { next(for: &client, now: now) != nil }

  /// Writes the oldest frame that the client should get and does not have.
  ///
  /// - Returns: whether there is another one; nil if there was none.
  public func write(for client: inout Client, now: Double, to outgoing: inout OutgoingFrame) -> Bool? {
    guard let next = next(for: &client, now: now), let location = client.location else { return nil }
    outgoing.write(frames[next.place], around: location, echo: client.echo, sent: now)
    let (seen, number) = (client.sections[next.place].seen, news[next.place].number)
    if seen > 0 { client.dropped += number - seen - 1 }
    client.sections[next.place].seen = number
    return next.count > 1
  }

  /// The index of that frame, and the number of frames that the client should get.
  private func next(for client: inout Client, now: Double) -> (place: Int, count: Int)? {
    let age = now - client.heard
    // The age is negative if the clock was set back.
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

/// A frame that is being sent. Clients that get the same frame get the same bytes, except for the stamps at the end. So
/// only the stamps are written for each client.
public struct OutgoingFrame: Sendable {
  /// The free space, and the frame behind it.
  public private(set) var bytes: [UInt8]
  /// The bytes that are left free at the beginning, for the sender.
  private let space: Int
  /// The frame in `bytes`, if it is a whole one, and where its stamps begin.
  private var whole: (serial: UInt64, end: Int)?

  public init(space: Int) {
    self.space = space
    bytes = [UInt8](repeating: 0, count: space)
  }

  /// - Parameter body: receives the frame. The free space is in front of it.
  /// - Returns: the result of `body`.
  public mutating func withPayload(_ body: (UnsafeMutablePointer<UInt8>, Int) -> Int32) -> Int32 {
    let length = bytes.count - space
    // The sending library asks for some free space, so the array is not empty and has an address.
    return bytes.withUnsafeMutableBufferPointer { body($0.baseAddress! + space, length) }
  }

  /// - Parameter echo: the rest of the frame, after the time of sending.
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

/// A frame in its form on the wire. Each object is rendered once for all clients.
private final class RenderedFrame: Sendable {
  let section: String
  let serial: UInt64
  private let head: [UInt8]
  private let objects: [UInt8]
  /// For each object: its position, and its bytes in `objects` with the comma after them.
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

  /// The size of the whole frame with the longest possible stamps, bytes.
  var most: Int { head.count + objects.count + tail.count + 160 }

  /// Appends everything before the time of sending.
  func write(around location: ClientLocation, to bytes: inout [UInt8]) {
    bytes += head
    let begin = bytes.count
    if let radius = location.radius {
      let plane = LocalPlane(at: location.position)
      for place in places where plane.point(of: place.position).length <= radius { bytes += objects[place.bytes] }
    } else {
      bytes += objects
    }
    // Removes the last comma.
    if bytes.count > begin { bytes.removeLast() }
    bytes += tail
  }
}

extension [UInt8] {
  /// Appends seconds with six decimals, such as `1700000000.250000`.
  fileprivate mutating func append(stamp time: Double) {
    var left = UInt64(Swift.max(0, (time * 1e6).rounded()))
    var begin = count
    // Written from the last digit to the first.
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

/// What a certificate's common name allows its holder at a bridge: `publisher:S40-50,S50-60`, `client`, or
/// `client:S40-50`.
public enum BridgeRole: Equatable, Sendable {
  /// May publish these sections.
  case publisher(Set<String>)
  /// May receive these sections; nil for all.
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

  /// The purpose of a request.
  public enum Place: Equatable, Sendable {
    case publisher(of: String)
    case client(Set<String>?)
  }

  /// - Parameter path: the request's path: `/traffic` for clients, `/publish/SECTION` for publishers.
  /// - Returns: nil if the path does not exist or the role may not use it.
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
