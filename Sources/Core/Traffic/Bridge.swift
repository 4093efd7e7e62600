import Domain
import Encoding
import Geography

/// What a bridge knows of the road, and what each of its clients is to get of it.
///
/// Pure: time is passed in, seconds since 1970 on the bridge's clock. FEED.md has the rules. Of a client it knows the last
/// place, as long as that counts.
public struct Bridge: Sendable {
  private let map: RoadMap?
  private var sections: [String: RenderedFrame] = [:]
  private var serial: UInt64 = 0

  /// Seconds for which a client's place counts.
  public static let locationMemory = 5.0
  /// Seconds after which a frame is no news any more.
  public static let freshness = 1.0

  /// - Parameter map: nil where each client gets every section.
  public init(map: RoadMap?) { self.map = map }

  /// Takes a section's newest frame.
  public mutating func take(_ frame: FeedFrame, at now: Double) {
    serial += 1
    let number = (sections[frame.section]?.number ?? 0) + 1
    sections[frame.section] = RenderedFrame(frame, serial: serial, number: number, received: now)
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
    /// The number of the last frame that it got of each section.
    fileprivate var seen: [String: Int] = [:]
    fileprivate var rate = RateLimit(perSecond: 10, burst: 20)
    /// How many frames it was too slow for.
    public fileprivate(set) var dropped = 0

    public init(allowed: Set<String>?) { self.allowed = allowed }
  }

  /// Takes what a client says of its place.
  ///
  /// - Returns: false when it says so more often than ten times a second.
  public func place(_ client: inout Client, at location: ClientLocation, now: Double) -> Bool {
    guard client.rate.take(at: now) else { return false }
    // What it missed while it got nothing, it was not too slow for.
    if now - client.heard > Self.locationMemory { client.seen = [:] }
    client.location = location
    client.heard = now
    client.echo = Array(
      ",\"echo\":\(JSON.number(location.time).text),\"echoReceived\":\(RenderedFrame.stamp(now))}}".utf8)
    client.around = map?.sections(at: location.position, radius: location.radius)
    return true
  }

  /// Whether there is a frame that a client is to get.
  public func hasNews(for client: Client, now: Double) -> Bool { next(for: client, now: now) != nil }

  /// Appends a frame that a client is to get: of those that it does not have, the oldest.
  ///
  /// - Returns: false when there is none.
  public func write(for client: inout Client, now: Double, to bytes: inout [UInt8]) -> Bool {
    guard let location = client.location, let (name, frame) = next(for: client, now: now) else { return false }
    frame.write(around: location, echo: client.echo, sent: now, to: &bytes)
    if let seen = client.seen.updateValue(frame.number, forKey: name) { client.dropped += frame.number - seen - 1 }
    return true
  }

  private func next(for client: Client, now: Double) -> (name: String, frame: RenderedFrame)? {
    let age = now - client.heard
    // A clock that was set back makes it negative.
    guard age >= 0, age <= Self.locationMemory else { return nil }
    var oldest: (name: String, frame: RenderedFrame)?
    for (name, frame) in sections
    where frame.number > client.seen[name] ?? 0 && frame.serial < oldest?.frame.serial ?? .max
      && abs(now - frame.received) <= Self.freshness && client.allowed?.contains(name) ?? true
      && client.around?.contains(name) ?? true
    {
      oldest = (name, frame)
    }
    return oldest
  }
}

/// A frame as it is sent: each object was written once, whoever gets it.
private struct RenderedFrame: Sendable {
  /// Counts all frames, and those of the section.
  let serial: UInt64
  let number: Int
  let received: Double
  private let head: [UInt8]
  private let objects: [UInt8]
  /// Where each object is, and where it is in `objects`, with the comma behind it.
  private let places: [(position: Coordinate, bytes: Range<Int>)]
  private let tail: [UInt8]

  init(_ frame: FeedFrame, serial: UInt64, number: Int, received: Double) {
    self.serial = serial
    self.number = number
    self.received = received
    let (seconds, microseconds) = frame.time.microseconds.quotientAndRemainder(dividingBy: 1_000_000)
    let nanoseconds = microseconds * 1000
    head = Array(
      """
      {"id":"\(serial)","section":\(JSON.string(frame.section).text),"timestampSecs":"\(seconds)",\
      "timestampNsecs":"\(nanoseconds)","timestampFull":"\(seconds).\(Self.padded(nanoseconds, 9))","vehicles":[
      """.utf8)
    var objects: [UInt8] = []
    places = frame.objects.map { object in
      let begin = objects.count
      objects += object.json.text.utf8
      objects.append(UInt8(ascii: ","))
      return (object.position, begin..<objects.count)
    }
    self.objects = objects
    tail = Array("],\"bridge\":{\"received\":\(Self.stamp(received)),\"sent\":".utf8)
  }

  /// - Parameter echo: what follows the time of sending, to the end.
  func write(around location: ClientLocation, echo: [UInt8], sent: Double, to bytes: inout [UInt8]) {
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
    bytes += Self.stamp(sent).utf8
    bytes += echo
  }

  /// Seconds to the microsecond.
  static func stamp(_ time: Double) -> String {
    let (seconds, microseconds) = Int64((time * 1e6).rounded()).quotientAndRemainder(dividingBy: 1_000_000)
    return "\(seconds).\(padded(microseconds, 6))"
  }

  private static func padded(_ number: Int64, _ width: Int) -> String {
    let digits = String(number)
    return String(repeating: "0", count: max(0, width - digits.count)) + digits
  }
}

/// How often something may be done: a bucket that fills up steadily, and out of which each time takes one.
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

  /// - Parameter now: seconds. A clock that was set back takes nothing away.
  public mutating func take(at now: Double) -> Bool {
    left = min(burst, left + max(0, now - last) * perSecond)
    last = now
    guard left >= 1 else { return false }
    left -= 1
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
  /// - Returns: nil for what the role may not do, and for what there is not.
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
