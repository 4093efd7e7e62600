import Access
import CodeReading
import CommandParts
import Domain
import Encoding
import Evaluation
import GeoJSON
import Geography
import Glibc
import HTTP
import NDEF
import NTAG424
import OBD
import Operator
import Positioning
import Ranging
import StepController
import SystemIO
import Tags
import Traffic
import TrafficBridge
import TrafficFeed

@testable import Bluetooth
@testable import FileFormats
@testable import Rider
@testable import StepProtocol
@testable import StepdConfiguration

/// Feeds libFuzzer's inputs to the parser that the environment variable FUZZ names. `make fuzz` runs each for a while.
@main
enum Fuzz {
  static func main() {
    let name = getenv("FUZZ").map { String(cString: $0) } ?? ""
    guard let target = targets[name] else {
      print("fuzz: set FUZZ to one of \(targets.keys.sorted().joined(separator: ", "))")
      exit(64)
    }
    Fuzz.target = target
    var count = CommandLine.argc
    var arguments: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>? = CommandLine.unsafeArgv
    exit(runDriver(&count, &arguments, testOneInput))
  }

  /// Set before the driver starts, and only read after that.
  nonisolated(unsafe) fileprivate static var target: @Sendable ([UInt8]) -> Void = { _ in }

  /// Every parser of bytes from outside. What it accepts must be the same after a round trip, where there is one.
  private static let targets: [String: @Sendable ([UInt8]) -> Void] = [
    "advertisement": { bytes in
      var reports = AdvertisingReports()
      _ = reports.read(event: bytes.span) { address, rssi, data in _ = IBeacon(advertisingData: data) }
      _ = IBeacon(advertisingData: bytes.span)
      if let frame = CallFrame.read(bytes) { precondition(CallFrame.read(CallFrame.advertisingData(frame)) == frame) }
    },
    "json": { bytes in
      guard let value = try? JSON(parsing: bytes) else { return }
      // As text, because a number beyond Double's range is infinite when it is read, and null when it is written.
      precondition((try? JSON(parsing: value.bytes))?.bytes == value.bytes)
    },
    "fleet": { bytes in
      // An operator's server can answer anything.
      _ = Problem(HTTPResponse(status: 409, body: bytes))
      guard let json = try? JSON(parsing: bytes) else { return }
      if let booking = try? Booking(json, from: "a") {
        precondition((try? Booking(booking.json, from: "a")) == booking)
      }
      _ = try? FleetVehicle(json, from: "a")
      _ = try? FleetZone(json, from: "a")
      if let event = try? BookingEvent(json, from: "a") {
        precondition((try? BookingEvent(event.json, from: "a")) == event)
      }
      if let login = SavedLogin(json) { precondition(SavedLogin(login.json) == login) }
    },
    "geojson": { bytes in
      guard let json = try? JSON(parsing: bytes), let area = try? GeoJSON.area(in: json) else { return }
      precondition(area.squareMetres >= 1)
      let corner = area.polygons[0].outer[0]
      precondition(area.distance(to: corner) < 0.01)
      // Rounded to a centimetre, a narrow area may be none.
      _ = try? GeoJSON.area(in: GeoJSON.json(of: area))
    },
    "evaluation": { bytes in
      for position in (try? PositionsFile.read(bytes)) ?? [] {
        precondition((0.01...1000).contains(position.distance) && !position.capture.isEmpty)
      }
      if let opening = try? Opening(parsing: bytes) {
        precondition(opening.duration.map { $0 >= 0 && $0.isFinite } ?? (opening.failure != nil))
      }
    },
    "base64url": { bytes in
      guard let text = String(validating: bytes, as: UTF8.self), let value = Base64URL.decode(text) else { return }
      // One text for one value.
      precondition(Base64URL.encode(value) == text)
    },
    "words": { bytes in
      let text = String(decoding: bytes, as: UTF8.self)
      if let uuid = UUID(text) { precondition(UUID(uuid.description) == uuid) }
      if let step = StepID(text) { precondition(StepID(step.description) == step) }
      if let topic = TopicPrefix(text) { precondition(topic.description == text) }
      _ = try? RadioSpec(text)
    },
    "keys": { bytes in
      guard let jwk = try? JSON(parsing: bytes) else { return }
      if let key = try? VerificationKey(jwk: jwk) { precondition((try? VerificationKey(jwk: key.jwk)) == key) }
      if let key = try? SigningKey(jwk: jwk) { precondition((try? SigningKey(jwk: key.jwk)) != nil) }
      if let key = try? DecryptionKey(jwk: jwk) { precondition((try? DecryptionKey(jwk: key.jwk)) != nil) }
      _ = try? BeaconSecret(jwk: jwk)
    },
    "claims": { bytes in
      // Behind the signatures, where a fuzzer cannot get by itself. The first byte says what the rest is.
      guard let first = bytes.first, let payload = try? JSON(parsing: bytes.dropFirst()) else { return }
      switch first {
      case UInt8(ascii: "s"):
        let signed = SignedObject.sign(payload, as: .status, by: Keys.signing)
        let status = JSON.object([.init("statement", .string(signed))])
        _ = try? Statement(payload: status.bytes, verifiedBy: Keys.operatorKey)
      case UInt8(ascii: "t"):
        _ = try? Token(verifying: SignedObject.sign(payload, as: .token, by: Keys.signing), by: Keys.operatorKey)
      case UInt8(ascii: "r"):
        _ = try? DeviceRequest(verifying: SignedObject.sign(payload, as: .request, by: Keys.signing))
      case UInt8(ascii: "n"):
        let signed = SignedObject.sign(payload, as: .notice, by: Keys.signing)
        if let notice = try? Notice.read(Array(signed.utf8), verifiedBy: [Keys.operatorKey]) {
          precondition((try? Notice(claims: notice.claims)) == notice)
        }
      case UInt8(ascii: "e"):
        let signed = Array(SignedObject.sign(payload, as: .event, by: Keys.signing).utf8)
        if let event = try? VehicleEvent(verifying: signed, by: Keys.operatorKey) {
          let again = Array(event.signed(by: Keys.signing).utf8)
          precondition((try? VehicleEvent(unverified: again)) == event)
        }
      case UInt8(ascii: "k"):
        _ = try? VehicleKeys(verifying: SignedObject.sign(payload, as: .keys, by: Keys.signing))
      case UInt8(ascii: "v"):
        _ = try? VehicleCode.verify(SignedObject.sign(payload, as: .vehicle, by: Keys.signing))
      default:
        // The device signs what it likes, with a token that is good.
        var members = payload.object ?? []
        members.append(.init("token", .string(Keys.token)))
        let signed = SignedObject.sign(.object(members), as: .command, by: Keys.signing)
        let sealed = EncryptedObject.seal(Array(signed.utf8), to: Keys.controller.encryptionKey).text
        _ = ReceivedCommand(Array(sealed.utf8), controller: Keys.controller, operatorKey: Keys.operatorKey)
      }
    },
    "journal": { bytes in
      guard let journal = try? Journal(parsing: bytes) else { return }
      precondition((try? Journal(parsing: journal.bytes)) == journal)
    },
    "hci": { bytes in
      // A controller that answers whatever it likes to the commands that a scan begins with.
      let controller = HCIController(PlayedLink(bytes))
      _ = try? controller.abilities(nil)
      _ = try? controller.request(.setScanEnable(true, extended: true), nil)
    },
    "command": { bytes in
      _ = ReceivedCommand(bytes, controller: Keys.controller, operatorKey: Keys.operatorKey)
      _ = try? VehicleEvent.opened(bytes, with: [Keys.controller])
      // Behind the encryption, where a fuzzer cannot get by itself.
      _ = try? Token(unverified: String(decoding: bytes, as: UTF8.self))
    },
    "link": { bytes in
      // Bytes that anybody in reach can send.
      var frames = Frames(longest: LinkFrame.longest)
      frames.append(bytes)
      while let message = try? frames.next() {
        guard let frame = try? LinkFrame(message) else { continue }
        precondition(Array(frame.bytes.dropFirst(2)) == message)
        let key = Keys.controller.thumbprint
        guard let text = EncryptedObject.text(ofBrief: frame.payload, for: key) else { continue }
        precondition(EncryptedObject.brief(text, for: key) == frame.payload)
        _ = ReceivedCommand(text, controller: Keys.controller, operatorKey: Keys.operatorKey)
      }
    },
    "statement": { bytes in
      _ = try? Statement(payload: bytes, verifiedBy: Keys.operatorKey)
    },
    "proof": { bytes in
      let text = String(decoding: bytes, as: UTF8.self)
      if let label = try? StepLabel(parsing: text) { precondition((try? StepLabel(parsing: label.text)) == label) }
      // What is read is what a proof gives, byte for byte.
      if let name = try? StepName(code: bytes) { precondition(name.content.utf8.elementsEqual(bytes)) }
      // One text for one message: nothing that a tag did not write is taken for what it wrote.
      if let tag = try? DynamicTag(parsing: text) {
        _ = tag.reading(with: Keys.tag)
        precondition(text.hasPrefix(DynamicTag.scheme))
      }
      if let uid = TagUID(text) { precondition(TagUID(uid.bytes) == uid) }
    },
    "feed": { bytes in
      if let location = try? ClientLocation(parsing: bytes) {
        precondition((try? ClientLocation(parsing: location.json.bytes)) == location)
      }
      if let scene = try? GuardScene(parsing: bytes) { _ = TrafficGuard(scene.site) }
      _ = try? RecordedFrame(parsing: bytes)
      guard let frame = try? FeedFrame(parsing: bytes), let place = frame.objects.first?.position else { return }
      // Whatever a feed says, the guard lives.
      let step = TrafficGuard.StepPlace(id: StepID("left")!, side: .left, from: 1, to: 2, reach: 0.4)
      var traffic = TrafficGuard(.init(position: place, heading: 1, length: 4, width: 2, steps: [step]))
      var clock = ClockOffset()
      for count in 0..<4 {
        var next = frame
        next.time.microseconds += Int64(count) * 40_000
        let now = Double(next.time.microseconds) / 1e6
        if let bridge = frame.bridge { clock.take(bridge, at: now) }
        traffic.take(next, at: now, clock: clock.estimate ?? .none)
        _ = traffic.verdict(for: step.id, at: now)
      }
    },
    "code": { bytes in
      let text = String(decoding: bytes, as: UTF8.self)
      _ = try? VehicleCode.verify(text)
      _ = try? DeviceRequest(verifying: text)
      _ = try? AccessFile(parsing: text, now: nil)
    },
    "qr": { bytes in
      // What a program may say that an attack has taken over.
      var frames = Frames(longest: DecoderReply.longest)
      frames.append(bytes)
      var said: [UInt8] = []
      while let body = try? frames.next(), let reply = try? DecoderReply(body: body) {
        said += Frames.frame(reply.body)
      }
      precondition(bytes.starts(with: said))
    },
    "bridge": { bytes in
      // What a program may say that an attack has taken over.
      var frames = Frames()
      var assembly = FrameAssembly()
      frames.append(bytes)
      while let body = try? frames.next(), let message = try? FeedMessage(body: body) {
        switch message {
        case .part(let part): guard (try? assembly.take(part)) != nil else { return }
        case .frame(_, _, let rest): _ = try? assembly.finish(rest)
        case .connected, .ended: break
        }
      }
      _ = try? FeedAddress(String(decoding: bytes, as: UTF8.self))
    },
    "serve": { bytes in
      // What a bridge's program may say that an attack has taken over, and what its clients may say to it.
      var frames = Frames(longest: 1024)
      frames.append(bytes)
      while let body = try? frames.next(), let message = try? BridgeMessage(body: body) {
        // What is no UTF-8, or too long, is said otherwise; and from then on the same.
        guard let again = try? BridgeMessage(body: message.body) else { preconditionFailure() }
        precondition((try? BridgeMessage(body: again.body)) == again)
      }
      let map = try? RoadMap(parsing: bytes)
      var bridge = Bridge(map: map)
      var client = Bridge.Client(allowed: nil)
      let frame = FeedFrame(section: "S1", time: UnixTime(microseconds: 1_700_000_000_000_000), objects: [])
      bridge.take((try? FeedFrame(parsing: bytes)) ?? frame, at: 1)
      if let location = try? ClientLocation(parsing: bytes), bridge.place(&client, at: location, now: 1) {
        var sent = OutgoingFrame(space: 0)
        // What it sends is a frame, whatever it was told.
        if bridge.write(for: &client, now: 1, to: &sent) != nil {
          precondition((try? FeedFrame(parsing: sent.bytes)) != nil)
        }
      }
      if let role = BridgeRole(commonName: String(decoding: bytes, as: UTF8.self)) {
        precondition(role.place(at: "/") == nil)
      }
    },
    "gps": { bytes in
      var settling = Settling()
      for (index, line) in bytes.split(separator: UInt8(ascii: "\n")).enumerated() {
        guard let report = try? GPSReport(parsing: line, at: Double(index)) else { break }
        switch report {
        case .fix(let fix, _): settling.take(fix)
        case .noFix: settling.take(nil)
        case .receivers, .error, .other: break
        }
        if case .settled(let fix) = settling.state { _ = Way(from: fix, to: Coordinate(latitude: 48, longitude: 9)!) }
      }
      if let server = try? HostPort(String(decoding: bytes, as: UTF8.self)[...], usual: GPSConnection.usual.port) {
        precondition((try? HostPort(server.description[...], usual: nil)) == server)
      }
    },
    "obd": { bytes in
      var (dialogue, now) = (OBDDialogue(at: .now), Instant.now)
      for part in bytes.split(separator: 0xFF, omittingEmptySubsequences: false) {
        // The first byte says how much later this comes.
        now = now + .milliseconds(Int(part.first ?? 0) * 20)
        guard (try? dialogue.passed(at: now)) != nil else { return }
        _ = dialogue.takeOutput()
        guard let events = try? dialogue.received(part.dropFirst(), at: now) else { return }
        for case .speed(let speed, let asked) in events { precondition((0...255).contains(speed) && asked <= now) }
      }
      if let address = OBDAddress(String(decoding: bytes, as: UTF8.self)[...]) {
        precondition(OBDAddress(address.text[...]) == address)
      }
    },
    "tags": { bytes in
      guard let file = try? TagKeyFile(parsing: bytes, path: "tags.json") else { return }
      precondition((try? TagKeyFile(parsing: Array(file.render().utf8), path: "tags.json")) == file)
    },
    "ntag424": { bytes in
      // AN12196, table 14.
      let random: [UInt8] = [
        0x13, 0xC5, 0xDB, 0x8A, 0x59, 0x30, 0x43, 0x9F, 0xC3, 0xDE, 0xF9, 0xA4, 0xC6, 0x75, 0x36, 0x0F,
      ]
      var authentication = NTAG424Authentication(
        key: [UInt8](repeating: 0, count: 16), number: 0, random: random)
      _ = try? authentication.second(after: Array(bytes.prefix(18)))
      guard var session = try? authentication.session(after: Array(bytes.dropFirst(18))) else { return }
      try? session.check(bytes, to: .changeFileSettings(file: 2, []))
    },
    "nfc": { bytes in
      var frames = Frames()
      frames.append(bytes)
      while let body = try? frames.next() {
        if let request = try? NFCRequest(body: body) { precondition((try? NFCRequest(body: request.body)) == request) }
        if let reply = try? NFCReply(body: body) { precondition((try? NFCReply(body: reply.body)) == reply) }
      }
    },
    "h4": { bytes in
      var deframer = H4Deframer()
      bytes.withUnsafeBytes { deframer.append($0) }
      while let event = try? deframer.nextEvent() { _ = event }
    },
    "vehicle": { bytes in
      guard let file = try? VehicleFile(parsing: bytes, path: "fuzz.toml") else { return }
      _ = file.render()
    },
    "controller": { bytes in
      guard let file = try? ControllerFile(parsing: bytes, path: "fuzz.toml") else { return }
      _ = file.render()
    },
    "ndef": { bytes in
      guard let message = try? NDEFMessage(parsing: bytes) else { return }
      precondition((try? NDEFMessage(parsing: message.bytes)) == message)
      _ = try? StepName(tag: message)
      for record in message.records {
        if let text = try? NDEFText(record) { precondition((try? NDEFText(text.record)) == text) }
        if let uri = try? NDEFURI(record) { precondition((try? NDEFURI(uri.record)) == uri) }
      }
    },
    "type2": { bytes in
      // The first byte says of which chip this is the memory, and whether all is to be replaced.
      guard let first = bytes.first else { return }
      let chips: [Type2Chip?] = [nil, .ultralight, .ntag213, .ntag215, .ntag216]
      let chip = chips[Int(first & 0x7F) % chips.count]
      let memory = Type2Memory(Array(bytes.dropFirst()))
      _ = Type2Chip(version: Array(bytes.prefix(8)))
      _ = try? Type2Layout.read(memory)
      _ = try? Type2Plan.lock(memory, chip: chip)
      let message = NDEFMessage([NDEFText("left").record])
      guard
        case .done(let plan) = try? Type2Plan.write(message, to: memory, chip: chip, replacingAll: first & 0x80 != 0)
      else { return }
      // What is planned is read back, whatever was there before.
      guard case .done(let layout) = try? Type2Layout.read(plan.memory) else { preconditionFailure() }
      precondition(layout.message == message.bytes)
    },
    "type4": { bytes in
      // Answers, each with its length before it; the last one is repeated for ever.
      var answers = bytes[...]
      var answer: [UInt8] = []
      func next() -> [UInt8] {
        if let length = answers.popFirst() {
          answer = Array(answers.prefix(Int(length)))
          answers = answers.dropFirst(Int(length))
        }
        return answer
      }
      var reading = Type4Reading()
      var steps = 0
      guard var step = try? reading.next(after: nil) else { return }
      while case .send = step {
        steps += 1
        precondition(steps < 40_000)
        guard let following = try? reading.next(after: next()) else { return }
        step = following
      }
    },
    "btsnoop": { bytes in
      var decoder = BTSnoopDecoder()
      var reports = AdvertisingReports()
      bytes.withUnsafeBytes { decoder.append($0) }
      do {
        var isMore = true
        while isMore {
          isMore =
            try decoder.next { _, event in
              reports.read(event: event) { _, _, data in _ = IBeacon(advertisingData: data) }
            } != nil
        }
        try decoder.finish()
      } catch {}
    },
  ]

  private enum Keys {
    static let controller = DecryptionKey()
    /// The operator's, the device's and the controller's at once.
    static let signing = SigningKey()
    static let operatorKey = signing.verificationKey
    static let token = SignedObject.sign(
      [
        "iss": "o", "sub": "r", "aud": "5f3c1c0e-7a0b-4f57-9a55-1f0f6c1b2a90", "steps": ["left"], "nbf": 0,
        "exp": 4_000_000_000, "jti": "1", "cnf": ["jwk": operatorKey.jwk],
      ], as: .token, by: signing)
    static let tag = DynamicTag.Keys(
      metaRead: Array(repeating: 0, count: 16), fileRead: Array(repeating: 0, count: 16))!
  }
}

/// A controller that says what it was given to say: events, each with its length before it.
private final class PlayedLink: HCILink {
  let name = "fuzz"
  let needsInitialization = true
  let descriptor: Int32 = -1
  let emptied = Instant.now
  private var left: ArraySlice<UInt8>

  init(_ bytes: [UInt8]) { left = bytes[...] }

  func send(_ packet: [UInt8]) throws(RadioError) {}

  func receive(
    until deadline: Instant?, _ interruption: Interruption?
  ) throws(RadioError) -> HCIPacket? {
    guard let length = left.popFirst() else { return nil }
    let body = Array(left.prefix(Int(length & 0x7F)))
    left = left.dropFirst(body.count)
    return length & 0x80 == 0 ? .event(body) : .command(body)
  }
}

/// The name that libFuzzer's own main looks for; it is linked in, though it is not used.
@_cdecl("LLVMFuzzerTestOneInput")
func testOneInput(_ bytes: UnsafePointer<UInt8>?, _ size: Int) -> Int32 {
  Fuzz.target([UInt8](UnsafeBufferPointer(start: bytes, count: size)))
  return 0
}

/// libFuzzer's entry point for programs with a main of their own (FuzzerInterface.h).
@_silgen_name("LLVMFuzzerRunDriver")
private func runDriver(
  _ argc: UnsafeMutablePointer<Int32>,
  _ argv: UnsafeMutablePointer<UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?>,
  _ callback: @convention(c) (UnsafePointer<UInt8>?, Int) -> Int32
) -> Int32
