import Cryptography
public import Domain
public import Encoding

/// What a vehicle's controller did or refused, for its operator. The controller signs each event and chains it to the
/// previous one, so that changed, missing or reordered events are detected.
///
/// It names no person: the operator who issued the token recognizes its `jti`. (PROTOCOL.md, section 9.3)
public struct VehicleEvent: Sendable, Equatable {
  /// Payloads are padded with spaces to these sizes, so that a broker cannot infer the content from the size.
  static let paddedSizes = [640, 1024]
  /// The largest encrypted event, bytes.
  public static let maximumSize = 4096
  /// How many events a controller publishes after the last acknowledged one. The operator must acknowledge to get more.
  public static let window = 64

  /// What has happened.
  public enum Kind: OpenWord {
    /// The controller has started.
    case started
    /// A motion began.
    case began
    /// A motion ended. The event tells where the step came to rest and, if that is not the target, why.
    case ended
    /// A rider stopped a motion.
    case stopped
    /// A command was refused.
    case refused
    /// Something is wrong with a step that does not move.
    case fault
    /// A notice from the operator is in force.
    case notice
    case other(String)

    /// Whether the event says where the vehicle stands. The others say nothing more about that.
    public var tellsPlace: Bool { [.started, .ended, .notice].contains(self) }

    public static let known: [Kind] = [.started, .began, .ended, .stopped, .refused, .fault, .notice]

    public var rawValue: String {
      switch self {
      case .started: "started"
      case .began: "began"
      case .ended: "ended"
      case .stopped: "stopped"
      case .refused: "refused"
      case .fault: "fault"
      case .notice: "notice"
      case .other(let word): word
      }
    }
  }

  /// Where a step came to rest, or what the command asked for.
  public enum Position: String, Sendable { case open, close, unknown, stop }

  /// What happened. The controller decides this first; the event gets its place in the chain later.
  public struct Content: Sendable, Equatable {
    public var kind: Kind
    /// On the vehicle's clock, which may be wrong: seconds of Unix time.
    public var time: Int64
    /// The step concerned; nil if the event concerns the whole vehicle.
    public var step: StepID?
    /// Where the step came to rest, or its target.
    public var position: Position?
    /// The `jti` of the rider's token.
    public var token: String?
    /// The word of the refusal or of the fault.
    public var code: String?
    /// A word that names the failed check, if `code` does not.
    public var cause: String?
    /// The proof's method and the zone that it states: words of the protocol.
    public var method: String?
    public var zone: String?
    /// How many refusals since the last event of this kind have no event of their own.
    public var untold: Int64?
    /// The `seq` of the notice.
    public var notice: Int64?
    /// Where the vehicle stood, if its controller knows that.
    public var place: ReportedPlace?

    public init(
      _ kind: Kind, time: Int64, step: StepID? = nil, position: Position? = nil, token: String? = nil,
      code: String? = nil, cause: String? = nil, method: String? = nil, zone: String? = nil, untold: Int64? = nil,
      notice: Int64? = nil, place: ReportedPlace? = nil
    ) {
      self.kind = kind
      self.time = time
      self.step = step
      self.position = position
      self.token = token
      self.code = code
      self.cause = cause
      self.method = method
      self.zone = zone
      self.untold = untold
      self.notice = notice
      self.place = place
    }
  }

  public let vehicle: UUID
  /// Greater than the number of the previous event. A gap means that an event could not be written.
  public let sequence: Int64
  /// The digest of the previous event. In the first event it is random, so that no two chains are alike.
  public let previous: EventDigest
  /// What happened.
  public let content: Content

  public init(vehicle: UUID, sequence: Int64, previous: EventDigest, _ content: Content) {
    self.vehicle = vehicle
    self.sequence = sequence
    self.previous = previous
    self.content = content
  }

  /// The compact form, which the controller stores. The next event names its digest.
  public func signed(by controllerKey: SigningKey) -> String {
    SignedObject.sign(claims, as: .event, by: controllerKey)
  }

  /// Reads a compact form and checks the controller's signature.
  public init(verifying text: [UInt8], by controllerKey: VerificationKey) throws(ProtocolError) {
    let object = try SignedObject(utf8: text, as: .event)
    try object.verify(by: controllerKey)
    try self.init(claims: object.payload)
  }

  /// Reads an event that the controller itself wrote, without verifying the signature.
  public init(unverified text: [UInt8]) throws(ProtocolError) {
    try self.init(claims: SignedObject(utf8: text, as: .event).payload)
  }

  private init(claims: JSON) throws(ProtocolError) {
    var members = try ObjectReader(claims, of: "the event")
    vehicle = try members.uuid("vehicle")
    sequence = try members.count("seq")
    previous = EventDigest(try members.bytes("prev", count: EventDigest.size))
    var content = Content(try members.openWord("kind", Kind.self), time: try members.count("time"))
    content.step = try members.takeIfPresent("step", "the id of a step") { $0.string.flatMap { StepID($0) } }
    content.position = try members.takeIfPresent("position", "one of its words") { value in
      value.string.flatMap(Position.init(exactly:))
    }
    content.token = try members.takeIfPresent("jti", "1 to 128 bytes of text") { value in
      value.string.flatMap { (1...128).contains($0.utf8.count) ? $0 : nil }
    }
    content.code = try members.wordIfPresent("code")
    content.cause = try members.wordIfPresent("cause")
    content.method = try members.wordIfPresent("method")
    content.zone = try members.wordIfPresent("zone")
    content.untold = try members.countIfPresent("untold")
    content.notice = try members.countIfPresent("notice")
    if content.kind.tellsPlace, let place = members.extensions?["place"] { content.place = try ReportedPlace(place) }
    try members.end()
    self.content = content
  }

  public var claims: JSON {
    var members: [JSON.Member] = [
      .init("vehicle", .string(vehicle.description)), .init("seq", .integer(sequence)),
      .init("prev", .string(previous.text)), .init("time", .integer(content.time)),
      .init("kind", .string(content.kind.rawValue)),
    ]
    for (name, text) in [
      ("step", content.step?.description), ("position", content.position?.rawValue), ("jti", content.token),
      ("code", content.code), ("cause", content.cause), ("method", content.method), ("zone", content.zone),
    ] {
      if let text { members.append(.init(name, .string(text))) }
    }
    if let untold = content.untold { members.append(.init("untold", .integer(untold))) }
    if let notice = content.notice { members.append(.init("notice", .integer(notice))) }
    if let place = content.place { members.append(.init("ext", ["place": place.json])) }
    return .object(members)
  }

  // MARK: - Encryption

  /// The payload to publish: the compact form, encrypted so that only the operator can read it.
  public static func sealed(_ signed: [UInt8], to operatorKey: EncryptionKey) -> [UInt8] {
    Array(EncryptedObject.seal(signed, to: operatorKey, as: .event).text.utf8)
  }

  /// Decrypts a payload and returns the compact form. The caller must still verify its signature.
  ///
  /// - Parameter keys: the operator's present key and earlier ones.
  public static func opened(_ payload: [UInt8], with keys: [DecryptionKey]) throws(ProtocolError) -> [UInt8] {
    guard payload.count <= maximumSize else { throw .malformed("larger than \(maximumSize) bytes") }
    for key in keys {
      do throws(ProtocolError) {
        return try EncryptedObject.open(utf8: payload, as: .event, with: key, usualHeader: []).content
      } catch .unknownKey {
        continue
      }
    }
    throw .unknownKey
  }
}

extension ReportedPlace {
  fileprivate init(_ value: JSON) throws(ProtocolError) {
    var members = try ObjectReader(value, of: "ext.place", isExtensible: false)
    let place = ReportedPlace(
      north: try members.count("north"), east: try members.count("east"), error: try members.count("error"),
      age: try members.count("age"))
    try members.end()
    guard let place else { throw .malformed("ext.place is no place on the earth") }
    self = place
  }

  fileprivate var json: JSON {
    ["north": .integer(north), "east": .integer(east), "error": .integer(error), "age": .integer(age)]
  }
}

/// The SHA-256 of an event's compact form.
public struct EventDigest: Hashable, Sendable {
  /// In bytes.
  public static let size = 32
  /// `size` bytes.
  public let bytes: [UInt8]

  /// - Parameter event: the compact form, without a line end.
  public init(of event: some Sequence<UInt8>) { bytes = SHA256.digest(of: Array(event)) }

  init(_ bytes: [UInt8]) { self.bytes = bytes }

  /// A random digest that belongs to no event. The first event of a chain names it.
  public static func random() -> EventDigest { EventDigest(randomBytes(size)) }

  /// Base64url.
  public var text: String { Base64URL.encode(bytes) }

  /// - Parameter text: from `text`; nil is returned for any other.
  public init?(text: String) {
    guard let bytes = Base64URL.decode(text), bytes.count == Self.size else { return nil }
    self.init(bytes)
  }
}

/// An event's place in a chain: its number and its digest.
public struct EventPlace: Hashable, Sendable {
  public let sequence: Int64
  public let digest: EventDigest

  public init(_ sequence: Int64, _ digest: EventDigest) {
    self.sequence = sequence
    self.digest = digest
  }

  init(_ value: JSON) throws(ProtocolError) {
    var members = try ObjectReader(value, of: "acked")
    sequence = try members.count("seq")
    digest = EventDigest(try members.bytes("hash", count: EventDigest.size))
    try members.end()
  }

  var json: JSON { ["seq": .integer(sequence), "hash": .string(digest.text)] }
}
