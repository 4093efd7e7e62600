import Domain
import Glibc
import MQTT
import StepProtocol
import Synchronization
import SystemIO
import TestSupport
import Testing

@testable import StepDaemon

@Suite("The file of events") struct EventFileTests {
  private let folder = try! TemporaryFolder()
  private let key = SigningKey()
  private let car = UUID("5f3c1c0e-7a0b-4f57-9a55-1f0f6c1b2a90")!
  private var path: String { folder.path + "/journal.json.events" }

  private let room = EventSpool.Room(capacity: 100, step: 10, refusals: 50)

  private func file(of vehicle: UUID? = nil, key: SigningKey? = nil) -> EventFile {
    EventFile(path, vehicle: vehicle ?? car, key: key ?? self.key, room: room)
  }

  private func contents(_ count: Int, _ kind: VehicleEvent.Kind = .began) -> [VehicleEvent.Content] {
    (0..<count).map { .init(kind, time: Int64($0), step: left) }
  }

  /// The events that wait, read as an operator would.
  private func events(_ file: EventFile) throws -> [VehicleEvent] {
    try (0..<file.count).map { try VehicleEvent(verifying: #require(file.text($0)), by: key.verificationKey) }
  }

  @Test("keeps a chain over restarts, for its owner alone")
  func chain() throws {
    var first = file()
    #expect(first.load() == nil)
    #expect(first.append(contents(3)) == nil)
    var second = file()
    #expect(second.load() == nil)
    #expect(second.append(contents(2)) == nil)
    let all = try events(second)
    #expect(all.map(\.sequence) == [1, 2, 3, 4, 5])
    for index in 1..<5 { #expect(all[index].previous == EventDigest(of: try #require(second.text(index - 1)))) }
    #expect(try TemporaryFolder.mode(path) == 0o600)
  }

  @Test("a crash at any byte of a write leaves the events before it, and the next has the same place as nobody saw")
  func torn() throws {
    var whole = file()
    _ = whole.load()
    _ = whole.append(contents(2))
    let begin = try Files.read(path).count
    _ = whole.append(contents(2))
    let bytes = try Files.read(path)
    for end in begin..<bytes.count {
      try Files.replace(path, with: bytes[..<end], mode: 0o600)
      var cut = file()
      #expect(cut.load() == nil, "byte \(end)")
      let kept = cut.count
      #expect(kept == 2 || kept == 3)
      #expect(cut.append(contents(1)) == nil)
      #expect(try events(cut).map(\.sequence) == Array(1...Int64(kept + 1)))
      // A second start reads all of it.
      var again = file()
      #expect(again.load() == nil)
      #expect(again.end == cut.end)
    }
  }

  @Test("of a write that a power cut tore, nothing counts from the first zeros on, and the chain goes on")
  func zeros() throws {
    var whole = file()
    _ = whole.load()
    _ = whole.append(contents(2))
    let begin = try Files.read(path).count
    _ = whole.append(contents(4))
    let bytes = try Files.read(path)
    for sector in 0..<(bytes.count - begin) / 512 {
      var torn = bytes
      for index in sector * 512..<(sector + 1) * 512 { torn[begin + index] = 0 }
      try Files.replace(path, with: torn, mode: 0o600)
      var cut = file()
      #expect(cut.load() == nil, "sector \(sector)")
      let kept = cut.count
      #expect(kept == torn.prefix { $0 != 0 }.count { $0 == 0x0A })
      #expect(cut.append(contents(1)) == nil)
      #expect(try events(cut).map(\.sequence) == Array(1...Int64(kept + 1)))
      var again = file()
      #expect(again.load() == nil)
      #expect(again.end == cut.end)
    }
  }

  @Test("what a rewrite that was cut off has left is removed, and nothing else")
  func leftovers() throws {
    for name in [".12.new", ".12.new.12.new", ".damaged", ".x.new", ".new"] {
      try Files.replace(path + name, with: [1], mode: 0o600)
    }
    var events = file()
    #expect(events.load() == nil)
    let names = try Files.names(in: folder.path).sorted()
    #expect(names == ["", ".damaged", ".new", ".x.new"].map { "journal.json.events" + $0 })
  }

  @Test("forgets what the operator has, and goes on with the chain when nothing is left")
  func acknowledged() throws {
    var events = file()
    _ = events.load()
    _ = events.append(contents(3))
    let second = EventPlace(2, EventDigest(of: try #require(events.text(1))))
    events.forget(upTo: EventPlace(3, second.digest))
    events.forget(upTo: EventPlace(2, EventDigest(of: [1])))
    #expect(events.count == 3, "a place that is not in the chain")
    events.forget(upTo: second)
    #expect(events.count == 1)
    events.forget(upTo: try #require(events.end))
    #expect(events.count == 0)
    events.forget(upTo: second)
    let end = try #require(events.end)
    var next = file()
    _ = next.load()
    next.forget(upTo: end)
    #expect(next.count == 0)
    _ = next.append(contents(1))
    #expect(try self.events(next).map(\.sequence) == [4])
    #expect(try self.events(next)[0].previous == end.digest)
  }

  @Test("does not grow without end, and what is rewritten is what waits")
  func compact() throws {
    var events = file()
    _ = events.load()
    for _ in 0..<20 {
      _ = events.append(contents(20))
      events.forget(upTo: try #require(events.end))
    }
    #expect(try Files.read(path).count < 150_000)
    #expect(try TemporaryFolder.mode(path) == 0o600, "the rewritten file is a new one")
    _ = events.append(contents(3))
    #expect(try self.events(events).map(\.sequence) == [401, 402, 403])
    var again = file()
    #expect(again.load() == nil)
    #expect(again.end == events.end)
  }

  @Test("a full one drops its oldest, which shows as a gap")
  func full() throws {
    var events = file()
    _ = events.load()
    _ = events.append(contents(room.capacity))
    #expect(events.makeRoom(for: 1) == room.step)
    _ = events.append(contents(1))
    #expect(events.count == room.capacity - room.step + 1)
    let first = try VehicleEvent(verifying: try #require(events.text(0)), by: key.verificationKey)
    #expect(first.sequence == Int64(room.step) + 1)
  }

  @Test("refusals leave half of it to motions, and are missed by their numbers")
  func refusals() throws {
    var events = file()
    _ = events.load()
    _ = events.append(contents(room.refusals + 7, .refused))
    #expect(events.count == room.refusals)
    _ = events.append(contents(1))
    let last = try VehicleEvent(
      verifying: try #require(events.text(room.refusals)), by: key.verificationKey)
    #expect(last.sequence == Int64(room.refusals) + 8)
    #expect(last.previous == EventDigest(of: try #require(events.text(room.refusals - 1))))
  }

  @Test("a disk that is full loses events, counts them, and leaves no half of one")
  func diskFull() throws {
    var events = file()
    _ = events.load()
    _ = events.append(contents(1))
    let before = try Files.read(path)
    // A folder in its place: as little can be written there as on a full disk.
    var blocked = EventFile(folder.path + "/none/events", vehicle: car, key: key)
    _ = blocked.load()
    let lost = blocked.append(contents(2))
    #expect(lost?.0 == 2 && lost?.1 == blocked.obstacle)
    mkdir(folder.path + "/none", 0o700)
    #expect(blocked.append(contents(1))?.0 == 1, "it may be whole, and is read first")
    #expect(blocked.load() == nil && blocked.obstacle == nil)
    #expect(blocked.append(contents(1)) == nil)
    let event = try VehicleEvent(verifying: try #require(blocked.text(0)), by: key.verificationKey)
    #expect(event.sequence == 4)
    #expect(try Files.read(path) == before)
  }

  @Test("one that cannot be read just now is not put aside, and its chain goes on")
  func unreadable() throws {
    var whole = file()
    _ = whole.load()
    _ = whole.append(contents(2))
    // As while a disk has errors: a link that leads around in a circle.
    let bytes = try Files.read(path)
    unlink(path)
    symlink(path, path)
    var next = file()
    #expect(next.load() == nil)
    #expect(next.append(contents(1))?.1 == next.obstacle && next.obstacle != nil)
    unlink(path)
    try Files.replace(path, with: bytes, mode: 0o600)
    #expect(next.load() == nil && next.obstacle == nil)
    #expect(next.append(contents(1)) == nil)
    // The one that was lost left a gap.
    #expect(try events(next).map(\.sequence) == [1, 2, 4])
    #expect(!Files.exists(path + ".damaged"))
  }

  @Test(
    "one that is not this controller's is put aside and not guessed at",
    arguments: ["rubbish\n", "{}\n", "vehicle", "key", "middle", "pipe"])
  func foreign(kind: String) throws {
    var other = file()
    _ = other.load()
    _ = other.append(contents(3))
    var new = file()
    switch kind {
    case "vehicle": new = file(of: UUID("00000000-0000-4000-8000-000000000000")!)
    case "key": new = file(key: SigningKey())
    case "middle":
      let lines = try Files.read(path).split(separator: 0x0A)
      try Files.replace(path, with: (lines[0] + [0x0A] + lines[2] + [0x0A]), mode: 0o600)
    case "pipe":
      unlink(path)
      mkfifo(path, 0o600)
    default: try Files.replace(path, with: Array(kind.utf8), mode: 0o600)
    }
    #expect(new.load()?.0 == path + ".damaged")
    #expect(Files.exists(path + ".damaged"))
    #expect(new.append(contents(1)) == nil)
    #expect(new.end?.sequence == 1)
  }

  @Test("each damaged file is kept, and none overwrites the one before")
  func damagedAgain() throws {
    let places = [".damaged", ".damaged-2", ".damaged-3"].map { path + $0 }
    for (number, place) in places.enumerated() {
      try Files.replace(path, with: Array("rubbish \(number)\n".utf8), mode: 0o600)
      var new = file()
      #expect(new.load()?.0 == place)
    }
    #expect(try places.map { try Files.read($0) } == (0..<3).map { Array("rubbish \($0)\n".utf8) })
  }
}

@Suite("Events on their way", .serialized) struct EventSpoolTests {
  private let folder = try! TemporaryFolder()
  private let key = SigningKey()
  private let operatorKey = SigningKey()
  private let eventKey = DecryptionKey()
  private let car = UUID("5f3c1c0e-7a0b-4f57-9a55-1f0f6c1b2a90")!

  /// A broker that acknowledges when a test wants it to.
  private final class Link: CommandLink, Sendable {
    let published: Mailbox<(PublishID, [UInt8])> = try! Mailbox()
    let last = Mutex<UInt64>(0)
    let isFull = Atomic(false)
    var descriptor: Int32 { published.descriptor }
    var holdUps: Int { 0 }
    func next() -> MQTTConnection.Event? { nil }
    func publish(topic: String, payload: [UInt8], retain: Bool) -> PublishID? {
      guard !isFull.load(ordering: .relaxed), !retain, topic == "car/events" else { return nil }
      let id = last.withLock { last in
        last += 1
        return PublishID(last)
      }
      published.post((id, payload))
      return id
    }
  }

  private func spool(_ link: Link) throws -> EventSpool {
    try EventSpool(folder.path + "/events", vehicle: car, key: key, link: link, topic: "car/events")
  }

  private func notice(_ sequence: Int64 = 1, acknowledging place: EventPlace? = nil) -> Notice {
    Notice(
      vehicle: car, sequence: sequence, issued: 1, keys: [operatorKey.verificationKey],
      eventKey: eventKey.encryptionKey, acknowledged: place)
  }

  private func message(_ link: Link, within patience: Duration = .seconds(60)) -> (PublishID, [UInt8])? {
    StepDaemonTests.next(link.published, within: patience)
  }

  /// The next event that is published, with its place; acknowledged by the broker.
  private func next(_ link: Link, _ spool: EventSpool, within patience: Duration = .seconds(60)) throws -> EventPlace? {
    guard let (id, payload) = message(link, within: patience) else { return nil }
    spool.acknowledged(id)
    let text = try VehicleEvent.opened(payload, with: [eventKey])
    return EventPlace(
      try VehicleEvent(verifying: text, by: key.verificationKey).sequence, EventDigest(of: text))
  }

  @Test("nothing is published before the operator has given a key, and before there is a broker")
  func waits() throws {
    let link = Link()
    let spool = try spool(link)
    spool.add(.init(.started, time: 1))
    spool.connected()
    #expect(try next(link, spool, within: .milliseconds(100)) == nil)
    spool.obey(notice())
    #expect(try next(link, spool)?.sequence == 1)
    spool.disconnected()
    spool.add(.init(.began, time: 2, step: left))
    #expect(try next(link, spool, within: .milliseconds(100)) == nil)
    spool.connected()
    #expect(try next(link, spool)?.sequence == 2)
    spool.finish(within: .seconds(5))
  }

  @Test("no more than a window is published, until the operator acknowledges")
  func window() throws {
    let link = Link()
    let spool = try spool(link)
    spool.obey(notice())
    spool.connected()
    for time in 1...100 { spool.add(.init(.began, time: Int64(time), step: left)) }
    var places: [EventPlace] = []
    while places.count < VehicleEvent.window, let place = try next(link, spool) { places.append(place) }
    #expect(places.map(\.sequence) == Array(1...64))
    #expect(try next(link, spool, within: .milliseconds(100)) == nil)
    spool.obey(notice(2, acknowledging: places[63]))
    while let place = try next(link, spool, within: places.count < 100 ? .seconds(60) : .milliseconds(300)) {
      places.append(place)
    }
    #expect(places.map(\.sequence) == Array(1...100))
  }

  @Test("no more than four are on their way at once, and a connection that takes none is tried again")
  func pace() throws {
    let link = Link()
    let spool = try spool(link)
    spool.obey(notice())
    spool.connected()
    for time in 1...10 { spool.add(.init(.began, time: Int64(time), step: left)) }
    var first: [(PublishID, [UInt8])] = []
    while let one = message(link, within: first.count < EventSpool.inFlight ? .seconds(60) : .milliseconds(300)) {
      first.append(one)
    }
    #expect(first.count == EventSpool.inFlight)
    link.isFull.store(true, ordering: .relaxed)
    for (id, _) in first { spool.acknowledged(id) }
    let deadline = Instant.now + .seconds(60)
    while !spool.isStalled, .now < deadline { usleep(1_000) }
    #expect(spool.isStalled)
    link.isFull.store(false, ordering: .relaxed)
    spool.acknowledged(PublishID(999))
    #expect(try next(link, spool)?.sequence == 5)
  }

  @Test("a notice begins again after what it acknowledges, as does a new connection with what no broker has")
  func again() throws {
    let link = Link()
    let spool = try spool(link)
    spool.obey(notice())
    spool.connected()
    for time in 1...3 { spool.add(.init(.began, time: Int64(time), step: left)) }
    let places = try (1...3).map { _ in try #require(try next(link, spool)) }
    spool.obey(notice(2, acknowledging: places[0]))
    #expect(try (1...2).map { _ in try next(link, spool)?.sequence } == [2, 3])
    spool.add(.init(.ended, time: 4, step: left))
    let lost = try #require(message(link)).1
    spool.disconnected()
    spool.connected()
    let repeated = try #require(message(link)).1
    let opened = try [lost, repeated].map { try VehicleEvent.opened($0, with: [eventKey]) }
    #expect(opened[0] == opened[1])
  }
}
