public import Domain
public import Encoding
public import Geography

/// A feed's message about one section of a road at one moment. FEED.md describes it.
public struct FeedFrame: Equatable, Sendable {
  public var section: String
  /// When the objects were at these places, on the feed's clock.
  public var time: UnixTime
  /// The ids are unique.
  public var objects: [RoadObject]
  /// The time stamps of the bridge that passed the frame on; nil if it sends none.
  public var bridge: BridgeStamps?

  public init(section: String, time: UnixTime, objects: [RoadObject], bridge: BridgeStamps? = nil) {
    self.section = section
    self.time = time
    self.objects = objects
    self.bridge = bridge
  }

  /// The longest frame, bytes, and the most objects in one.
  public static let longest = 1 << 20
  public static let mostObjects = 2000

  /// The order in which a feed gives the two numbers of a position.
  public enum Axes: String, Sendable, CaseIterable {
    case latlon, lonlat
  }

  /// - Throws: `FeedFlaw`, for everything that FEED.md does not allow. Unknown members are ignored.
  public init(parsing bytes: [UInt8], axes: Axes = .latlon) throws(FeedFlaw) {
    guard bytes.count <= Self.longest else { throw FeedFlaw("frame", "at most 1 MiB") }
    let json: JSON
    do { json = try JSON(parsing: bytes, maximumDepth: 8) } catch { throw FeedFlaw("frame", error) }
    try self.init(json, axes: axes)
  }

  init(_ json: JSON, axes: Axes) throws(FeedFlaw) {
    let reader = FeedReader(json, "frame")
    section = try reader.text("section")
    time = try reader.time()
    guard let list = try reader.member("vehicles").array else { throw FeedFlaw("vehicles", "an array") }
    guard list.count <= Self.mostObjects else { throw FeedFlaw("vehicles", "at most \(Self.mostObjects)") }
    objects = []
    objects.reserveCapacity(list.count)
    var ids: Set<String> = []
    for (index, object) in list.enumerated() {
      let object = try RoadObject(FeedReader(object, "vehicles[\(index)]"), axes: axes)
      guard ids.insert(object.id).inserted else { throw FeedFlaw("vehicles[\(index)].id", "each id once") }
      objects.append(object)
    }
    bridge = try json["bridge"].map { json throws(FeedFlaw) in try BridgeStamps(FeedReader(json, "bridge")) }
  }

  public var json: JSON {
    let (seconds, microseconds) = time.microseconds.quotientAndRemainder(dividingBy: 1_000_000)
    var members: [JSON.Member] = [
      .init("section", .string(section)), .init("timestampSecs", .string("\(seconds)")),
      .init("timestampNsecs", .string("\(microseconds * 1000)")), .init("vehicles", .array(objects.map(\.json))),
    ]
    if let bridge { members.append(.init("bridge", bridge.json)) }
    return .object(members)
  }
}

/// An object on the road.
public struct RoadObject: Equatable, Sendable {
  /// The object's name within its section.
  public var id: String
  public var category: Category
  /// The middle of its box.
  public var position: Coordinate
  /// Metres per second, to the north (x) and to the east (y).
  public var velocity: Vector
  /// The direction of its length: radians clockwise from north, from 0 up to 2π.
  public var heading: Double
  /// Metres; nil if unknown.
  public var length: Double?
  public var width: Double?
  public var scenarios: Scenarios

  public init(
    id: String, category: Category, position: Coordinate, velocity: Vector, heading: Double, length: Double?,
    width: Double?, scenarios: Scenarios = Scenarios()
  ) {
    self.id = id
    self.category = category
    self.position = position
    self.velocity = velocity
    self.heading = heading
    self.length = length
    self.width = width
    self.scenarios = scenarios
  }

  /// Nobody walks as fast as 2.5 m/s: at about 2 m/s people begin to run. A faster object that a feed calls a
  /// pedestrian may be a bicycle.
  private static let fastestWalk = 2.5

  /// Whether it is a person on foot, as the rider is. A person who runs does not count.
  public var isWalking: Bool { category == .pedestrian && velocity.length <= Self.fastestWalk }

  /// Below 0.3 m/s: feeds give standing objects a speed that is not quite 0.
  package var isStanding: Bool { velocity.length < 0.3 }

  /// The kind of object. Any unknown word is `other`.
  public enum Category: String, Sendable, CaseIterable {
    case bus, car, truck, motorcycle, bicycle, pedestrian, other

    /// With an article, for use in a sentence.
    public var phrase: String { self == .other ? "something" : "a \(rawValue)" }

    /// Assumed length and width in metres if a feed does not know them. They are rather large.
    public var usualSize: Vector {
      switch self {
      case .bus: Vector(x: 12, y: 2.55)
      case .truck, .other: Vector(x: 10, y: 2.55)
      case .car: Vector(x: 4.8, y: 1.9)
      case .motorcycle: Vector(x: 2.2, y: 0.9)
      case .bicycle: Vector(x: 1.9, y: 0.7)
      case .pedestrian: Vector(x: 0.6, y: 0.6)
      }
    }
  }

  /// What the feed has noticed about the object.
  public struct Scenarios: Equatable, Sendable {
    public var wrongWay = false
    /// From 0, keeps its distance, to 3, far too near.
    public var tailGateLevel = 0
    public var speeding = false
    public var standing = false
    public var laneChangeLeft = false
    public var laneChangeRight = false
    public var cutInLeft = false
    public var cutInRight = false
    public var cutOutLeft = false
    public var cutOutRight = false

    public init() {}

    /// Behaviour that endangers others.
    public enum Kind: String, Sendable, CaseIterable {
      case wrongWay = "wrong way"
      case standing
      case tailgating
      case speeding
      case laneChange = "lane change"
    }

    /// The one that matters most to others.
    public var mostSerious: Kind? {
      if wrongWay { return .wrongWay }
      if standing { return .standing }
      if tailGateLevel > 0 { return .tailgating }
      if speeding { return .speeding }
      let isChanging =
        laneChangeLeft || laneChangeRight || cutInLeft || cutInRight || cutOutLeft || cutOutRight
      return isChanging ? .laneChange : nil
    }

    private static let flags: [(String, any WritableKeyPath<Scenarios, Bool> & Sendable)] = [
      ("wrongWay", \.wrongWay), ("speeding", \.speeding), ("standing", \.standing),
      ("laneChangeLeft", \.laneChangeLeft), ("laneChangeRight", \.laneChangeRight), ("cutInLeft", \.cutInLeft),
      ("cutInRight", \.cutInRight), ("cutOutLeft", \.cutOutLeft), ("cutOutRight", \.cutOutRight),
    ]

    init(_ reader: FeedReader) throws(FeedFlaw) {
      for (name, path) in Self.flags { self[keyPath: path] = try reader.flag(name) }
      if reader.has("tailGateLevel") { tailGateLevel = Int(try reader.integer("tailGateLevel", in: 0...3)) }
    }

    var json: JSON {
      .object(
        Self.flags.compactMap { name, path in self[keyPath: path] ? .init(name, true) : nil }
          + (tailGateLevel > 0 ? [.init("tailGateLevel", .integer(Int64(tailGateLevel)))] : []))
    }
  }

  init(_ reader: FeedReader, axes: FeedFrame.Axes) throws(FeedFlaw) {
    id = try reader.text("id")
    category = Category(rawValue: try reader.text("category")) ?? .other
    let place = try reader.object("position")
    let (x, y) = (try place.number("x", in: -180...180), try place.number("y", in: -180...180))
    let position =
      axes == .latlon ? Coordinate(latitude: x, longitude: y) : Coordinate(latitude: y, longitude: x)
    guard let position else { throw FeedFlaw("\(place.place)", "a latitude from -90 to 90") }
    self.position = position
    let speed = try reader.object("speed")
    velocity = Vector(x: try speed.number("x", in: -100...100), y: try speed.number("y", in: -100...100))
    guard velocity.length <= 100 else { throw FeedFlaw(speed.place, "at most 100 m/s") }
    // The limit leaves room for a rounded 2π.
    heading = try speed.number("z", in: -6.3...6.3)
    if heading < 0 { heading += 2 * .pi } else if heading >= 2 * .pi { heading -= 2 * .pi }
    let shape = try reader.object("shape")
    func size(_ name: String) throws(FeedFlaw) -> Double? {
      let size = try shape.number(name, in: 0...50)
      return size > 0 ? size : nil
    }
    length = try size("length")
    width = try size("width")
    scenarios = reader.has("scenarios") ? try Scenarios(reader.object("scenarios")) : Scenarios()
  }

  public var json: JSON {
    // Rounding must not lift a speed above 100 m/s, because readers refuse that.
    let speed = velocity.length > 99.999 ? velocity * (99.999 / velocity.length) : velocity
    var members: [JSON.Member] = [
      .init("id", .string(id)), .init("category", .string(category.rawValue)),
      // The eighth decimal of a degree is about a millimetre.
      .init(
        "position",
        [
          "x": .rounded(position.latitude, places: 8), "y": .rounded(position.longitude, places: 8), "z": 0,
        ]),
      .init(
        "speed",
        [
          "x": .rounded(speed.x, places: 3), "y": .rounded(speed.y, places: 3), "z": .rounded(heading, places: 4),
        ]),
      .init(
        "shape",
        ["length": .rounded(length ?? 0, places: 2), "width": .rounded(width ?? 0, places: 2), "height": 0]),
    ]
    if scenarios != Scenarios() { members.append(.init("scenarios", scenarios.json)) }
    return .object(members)
  }
}

/// Times that our bridges add: seconds since 1970 on the bridge's clock, except `echo`.
public struct BridgeStamps: Equatable, Sendable {
  /// When the publisher's frame arrived at the bridge.
  public var received: Double
  /// When this frame left the bridge.
  public var sent: Double
  /// The `timestamp` of the client's last message, on the client's clock, and when that message arrived at the bridge.
  public var echo: Double?
  public var echoReceived: Double?

  public init(received: Double, sent: Double, echo: Double? = nil, echoReceived: Double? = nil) {
    self.received = received
    self.sent = sent
    self.echo = echo
    self.echoReceived = echoReceived
  }

  init(_ reader: FeedReader) throws(FeedFlaw) {
    received = try reader.number("received", in: FeedReader.times)
    sent = try reader.number("sent", in: FeedReader.times)
    guard reader.has("echo") else { return }
    echo = try reader.number("echo", in: FeedReader.times)
    echoReceived = try reader.number("echoReceived", in: FeedReader.times)
  }

  public var json: JSON {
    var members: [JSON.Member] = [.init("received", .number(received)), .init("sent", .number(sent))]
    if let echo, let echoReceived {
      members += [.init("echo", .number(echo)), .init("echoReceived", .number(echoReceived))]
    }
    return .object(members)
  }
}

/// A client's message to the bridge: its place.
public struct ClientLocation: Equatable, Sendable {
  /// Seconds since 1970 on the client's clock.
  public var time: Double
  public var position: Coordinate
  /// Metres.
  public var accuracy: Double
  /// Degrees clockwise from north.
  public var course: Double
  /// Metres per second.
  public var speed: Double
  public var speedAccuracy: Double
  /// The radius around the position, metres; nil for whole sections.
  public var radius: Double?

  public init(
    time: Double, position: Coordinate, accuracy: Double, course: Double = 0, speed: Double = 0,
    speedAccuracy: Double = 0, radius: Double? = nil
  ) {
    self.time = time
    self.position = position
    self.accuracy = accuracy
    self.course = course
    self.speed = speed
    self.speedAccuracy = speedAccuracy
    self.radius = radius
  }

  /// The longest message, bytes.
  public static let longest = 4096
  public static let radii = 10.0...1000

  public init(parsing bytes: [UInt8]) throws(FeedFlaw) {
    guard bytes.count <= Self.longest else { throw FeedFlaw("location", "at most \(Self.longest) bytes") }
    let json: JSON
    do { json = try JSON(parsing: bytes, maximumDepth: 4) } catch { throw FeedFlaw("location", error) }
    let reader = FeedReader(json, "location")
    time = try reader.number("timestamp", in: FeedReader.times)
    position = try reader.coordinate()
    accuracy = try reader.number("locationAccuracy", in: 0...1e6)
    // Phones send -1 for those of these three that they do not know.
    course = try reader.number("course", in: -1...360)
    speed = try reader.number("speed", in: -1...100)
    speedAccuracy = try reader.number("speedAccuracy", in: -1...100)
    radius = reader.has("radius") ? try reader.number("radius", in: Self.radii) : nil
  }

  public var json: JSON {
    var members: [JSON.Member] = [
      .init("timestamp", .number(time)), .init("locationAccuracy", .number(accuracy)), .init("course", .number(course)),
      .init("speed", .number(speed)), .init("speedAccuracy", .number(speedAccuracy)),
      .init("longitude", .number(position.longitude)), .init("latitude", .number(position.latitude)),
    ]
    if let radius { members.append(.init("radius", .number(radius))) }
    return .object(members)
  }
}

/// A frame and the time of its arrival: one line of a recording.
public struct RecordedFrame: Equatable, Sendable {
  public let received: UnixTime
  public let frame: FeedFrame

  public init(received: UnixTime, frame: FeedFrame) {
    self.received = received
    self.frame = frame
  }

  public init(parsing line: [UInt8], axes: FeedFrame.Axes = .latlon) throws(FeedFlaw) {
    let json: JSON
    do { json = try JSON(parsing: line, maximumDepth: 9) } catch { throw FeedFlaw("record", error) }
    let reader = FeedReader(json, "record")
    received = UnixTime(microseconds: Int64((try reader.number("received", in: FeedReader.times) * 1e6).rounded()))
    frame = try FeedFrame(reader.member("frame"), axes: axes)
  }

  public var json: JSON { ["received": .number(Double(received.microseconds) / 1e6), "frame": frame.json] }
}
