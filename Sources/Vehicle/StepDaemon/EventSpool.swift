import Domain
import Glibc
import MQTT
import StepProtocol
import Synchronization
import SystemIO

/// A report for the log: events that the operator does not get, or that begin a new chain.
enum EventLoss: Sendable, Equatable {
  /// This many events are lost, and why.
  case lost(Int64, String)
  /// The oldest events were dropped to make room.
  case dropped(Int)
  /// The file could not be read, and was moved to the second path. A new chain begins.
  case setAside(String, to: String, String)
}

/// Keeps the controller's events until the operator has them, and publishes them. It uses its own thread, so that
/// neither the disk nor the signatures delay a motion.
///
/// The file has one signed event per line. It only grows, until most of it is acknowledged. An event is published only
/// after it is on the medium, so even a crash cannot make the controller use one number for two events. A line that a
/// crash cut off was never published, and is dropped.
final class EventSpool: Sendable {
  /// How many events may wait for the operator.
  struct Room: Sendable {
    /// The limit. The oldest events make room for new ones.
    var capacity = 10_000
    /// How many are dropped at once, so that the file is seldom rewritten.
    var step = 1_000
    /// Refusals take no more room than this, so that nobody can push out motions by causing refusals.
    var refusals = 5_000
  }

  /// How many are in delivery to the broker at once: riders' answers come first.
  static let inFlight = 4
  /// How many may wait for a disk that does not answer.
  private static let waiting = 256

  let reports: Mailbox<EventLoss>
  private let worker: Worker<Job>
  private let pressure: Pressure

  private enum Job: Sendable {
    case load
    case add(VehicleEvent.Content)
    case obey(EncryptionKey?, EventPlace?)
    case connected
    case disconnected
    case acknowledged(PublishID)
  }

  private final class Pressure: Sendable {
    /// The number of events that wait for the thread.
    let waiting = Atomic(0)
    /// The number of events that found no room.
    let lost = Atomic<Int64>(0)
    let isStalled = Atomic(false)
  }

  /// Starts the thread. It reads the file, so that the file does not delay the start.
  ///
  /// - Parameters:
  ///   - path: the file, which is created if it is missing.
  ///   - topic: the topic for the events.
  init(_ path: String, vehicle: UUID, key: SigningKey, link: any CommandLink, topic: String) throws(SystemError) {
    let (reports, pressure) = (try Mailbox<EventLoss>(), Pressure())
    self.reports = reports
    self.pressure = pressure
    let shared = Shared(Spooling(EventFile(path, vehicle: vehicle, key: key), link, topic) { reports.post($0) })
    worker = try Worker { jobs in
      shared.value.withLock { spooling in
        var contents: [VehicleEvent.Content] = []
        func write() {
          spooling.add(contents, lost: pressure.lost.exchange(0, ordering: .relaxed))
          pressure.waiting.subtract(contents.count, ordering: .relaxed)
          contents = []
        }
        for job in jobs {
          if case .add(let content) = job {
            contents.append(content)
            continue
          }
          // Events are written together, but in their order among the other jobs.
          if !contents.isEmpty { write() }
          switch job {
          case .load: spooling.load()
          case .obey(let key, let place): spooling.obey(key, place)
          case .connected: spooling.connect()
          case .disconnected: spooling.disconnect()
          case .acknowledged(let id): spooling.acknowledge(id)
          case .add: break
          }
        }
        if !contents.isEmpty { write() }
        pressure.isStalled.store(spooling.send(), ordering: .relaxed)
      }
    }
    worker.post(.load)
  }

  /// Keeps an event. Does not wait.
  func add(_ content: VehicleEvent.Content) {
    guard pressure.waiting.load(ordering: .relaxed) < Self.waiting else {
      pressure.lost.add(1, ordering: .relaxed)
      return
    }
    pressure.waiting.add(1, ordering: .relaxed)
    worker.post(.add(content))
  }

  /// The operator's notice is in force.
  func obey(_ notice: Notice) { worker.post(.obey(notice.eventKey, notice.acknowledged)) }

  func connected() { worker.post(.connected) }

  func disconnected() { worker.post(.disconnected) }

  /// The broker has a message; it may be an event.
  func acknowledged(_ id: PublishID) { worker.post(.acknowledged(id)) }

  /// Whether it waits until the broker has other messages.
  var isStalled: Bool { pressure.isStalled.load(ordering: .relaxed) }

  /// Waits until all earlier events are on the medium.
  func finish(within time: Duration) { worker.finish(within: time) }
}

/// The state of the thread.
private struct Spooling: Sendable {
  private var file: EventFile
  private let link: any CommandLink
  private let topic: String
  private let report: @Sendable (EventLoss) -> Void
  private var key: EncryptionKey?
  private var isConnected = false
  /// How many of the waiting events were published, the oldest first.
  private var sent = 0
  private var inFlight: Set<PublishID> = []

  init(
    _ file: EventFile, _ link: any CommandLink, _ topic: String,
    _ report: @escaping @Sendable (EventLoss) -> Void
  ) {
    (self.file, self.link, self.topic, self.report) = (file, link, topic, report)
  }

  mutating func load() {
    if let (place, reason) = file.load() { report(.setAside(file.path, to: place, reason)) }
  }

  mutating func add(_ contents: [VehicleEvent.Content], lost: Int64) {
    file.lost += lost
    if lost > 0 { report(.lost(lost, "the disk did not answer, and too many events waited")) }
    if file.obstacle != nil {
      load()
      sent = 0
    }
    let dropped = file.makeRoom(for: contents.count)
    if dropped > 0 {
      sent = max(0, sent - dropped)
      report(.dropped(dropped))
    }
    if let (count, reason) = file.append(contents) { report(.lost(count, reason)) }
  }

  /// The operator asks for all events that it has not acknowledged.
  mutating func obey(_ key: EncryptionKey?, _ place: EventPlace?) {
    self.key = key
    if let place { file.forget(upTo: place) }
    sent = 0
  }

  mutating func connect() { isConnected = true }

  mutating func disconnect() {
    isConnected = false
    sent = max(0, sent - inFlight.count)
    inFlight = []
  }

  mutating func acknowledge(_ id: PublishID) { inFlight.remove(id) }

  /// Publishes the events that may be published now.
  ///
  /// - Returns: whether the connection is full at present.
  mutating func send() -> Bool {
    guard isConnected, let key else { return false }
    while sent < min(file.count, VehicleEvent.window), inFlight.count < EventSpool.inFlight {
      guard let text = file.text(sent) else { return false }
      let payload = VehicleEvent.sealed(text, to: key)
      guard let id = link.publish(topic: topic, payload: payload, retain: false) else { return true }
      inFlight.insert(id)
      sent += 1
    }
    return false
  }
}

/// The events that wait for the operator, in a file: one signed event a line.
struct EventFile: Sendable {
  /// The largest file to read, bytes: more than twice the size of `Room.capacity` events.
  private static let limit = 1 << 26
  /// Acknowledged events stay in the file until they take this many bytes, and more than the others.
  private static let slack = 1 << 16
  /// More bytes than `EventSpool.waiting` events, which may be written at once.
  private static let longestWrite = 1 << 20

  private struct Entry {
    let place: EventPlace
    let offset: Int
    /// Without the end of the line.
    let length: Int
  }

  let path: String
  private let vehicle: UUID
  private let key: SigningKey
  private let room: EventSpool.Room
  private var file: OpenFile?
  /// The waiting events, the oldest first.
  private var entries: [Entry] = []
  /// The last event in the file. It stays there, so that the chain goes on after a restart.
  private var last: Entry?
  /// The size of the file's valid part, bytes. What a failed write left behind it is cut off before the next write.
  private var size = 0
  private var isTorn = false
  /// How many events could not be written since the last written one.
  var lost: Int64 = 0
  /// Why the file cannot be read at present, although it may be whole. Nothing is appended until it was read.
  private(set) var obstacle: String?

  init(_ path: String, vehicle: UUID, key: SigningKey, room: EventSpool.Room = .init()) {
    (self.path, self.vehicle, self.key, self.room) = (path, vehicle, key, room)
  }

  /// How many events wait.
  var count: Int { entries.count }

  /// The end of the chain.
  var end: EventPlace? { last?.place }

  /// Opens the file. Removes what a crash has left of the last write.
  ///
  /// - Returns: for a file that does not contain this controller's chain, where it was moved and why; otherwise nil.
  mutating func load() -> (String, String)? {
    Files.removeLeftovers(of: path)
    (file, entries, last, size, isTorn, obstacle) = (nil, [], nil, 0, false, nil)
    do {
      try read()
      return nil
    } catch {
      (file, entries, last, size, isTorn) = (nil, [], nil, 0, false)
      // Too large, or no regular file: another program made it.
      if let error = error as? SystemError, ![EFBIG, EINVAL].contains(error.code) {
        obstacle = error.description
        return nil
      }
      // An older file that was set aside stays: it may be the only copy of those events.
      var (place, number) = ("\(path).damaged", 1)
      while Files.exists(place) {
        number += 1
        place = "\(path).damaged-\(number)"
      }
      rename(path, place)
      try? open()
      return (place, "\(error)")
    }
  }

  private struct Damage: Error, CustomStringConvertible { let description: String }

  private mutating func open() throws(SystemError) {
    let file = try Files.openToAppendForOwner(path, mode: 0o600)
    let number = file.number
    var status = stat()
    _ = try check("open", path) { fstat(number, &status) }
    guard status.st_mode & S_IFMT == S_IFREG else {
      throw SystemError("open", "\(path), which is not a regular file", code: EINVAL)
    }
    self.file = OpenFile(file)
  }

  private mutating func read() throws {
    try open()
    let bytes = try Files.readRegular(path, limit: Self.limit)
    // After a power cut there may be zeros where a write did not reach the medium, with other parts of it behind them.
    let whole = bytes.prefix { $0 != 0 }
    guard bytes.count - whole.count <= Self.longestWrite else {
      throw Damage(description: "it has zeros in its middle")
    }
    var begin = 0
    while let end = whole[begin...].firstIndex(of: 0x0A) {
      let line = Array(bytes[begin..<end])
      let event = try VehicleEvent(unverified: line)
      guard event.vehicle == vehicle else { throw Damage(description: "it is of another vehicle") }
      if let last, event.previous != last.place.digest || event.sequence <= last.place.sequence {
        throw Damage(description: "event \(event.sequence) does not follow the one before it")
      }
      let entry = Entry(place: .init(event.sequence, EventDigest(of: line)), offset: begin, length: line.count)
      entries.append(entry)
      last = entry
      begin = end + 1
    }
    size = begin
    if begin < bytes.count { try cut() }
    // One signature is enough to check whose events these are, because each event names the one before it.
    if let last {
      let line = Array(bytes[last.offset..<last.offset + last.length])
      do { _ = try VehicleEvent(verifying: line, by: key.verificationKey) } catch {
        throw Damage(description: "it was signed with another key")
      }
    }
  }

  /// Removes everything behind the last complete line.
  private mutating func cut() throws(SystemError) {
    guard let number = file?.descriptor.number else { return }
    _ = try check("write", path) { ftruncate(number, off_t(size)) }
    isTorn = false
  }

  /// Drops the oldest events if there is no room for more.
  ///
  /// - Returns: how many were dropped.
  mutating func makeRoom(for more: Int) -> Int {
    guard entries.count + more > room.capacity else { return 0 }
    let count = min(entries.count, max(room.step, more))
    entries.removeFirst(count)
    compact()
    return count
  }

  /// Writes events, and returns when they are on the medium.
  ///
  /// - Returns: how many are lost, and why.
  mutating func append(_ contents: [VehicleEvent.Content]) -> (Int64, String)? {
    if let obstacle {
      lost += Int64(contents.count)
      return (Int64(contents.count), obstacle)
    }
    var (bytes, new): ([UInt8], [Entry]) = ([], [])
    var (end, skipped) = (last?.place, lost)
    for content in contents {
      if content.kind == .refused, entries.count + new.count >= room.refusals {
        skipped += 1
        continue
      }
      let event = VehicleEvent(
        vehicle: vehicle, sequence: (end?.sequence ?? 0) + 1 + skipped, previous: end?.digest ?? .random(),
        content)
      let line = Array(event.signed(by: key).utf8)
      let place = EventPlace(event.sequence, EventDigest(of: line))
      new.append(Entry(place: place, offset: size + bytes.count, length: line.count))
      bytes += line + [0x0A]
      (end, skipped) = (place, 0)
    }
    do throws(SystemError) {
      if file == nil { try open() }
      if isTorn { try cut() }
      if !bytes.isEmpty {
        isTorn = true
        try file?.descriptor.write(bytes, path)
        try file?.descriptor.synchronize(path)
        isTorn = false
      }
    } catch {
      let count = Int64(contents.count)
      lost += count
      try? cut()
      return (count, error.description)
    }
    lost = skipped
    size += bytes.count
    entries += new
    last = new.last ?? last
    return nil
  }

  /// The text of the event at this index; the oldest has index 0.
  func text(_ index: Int) -> [UInt8]? {
    let entry = entries[index]
    return bytes(from: entry.offset, count: entry.length)
  }

  private func bytes(from offset: Int, count: Int) -> [UInt8]? {
    guard let number = file?.descriptor.number else { return nil }
    let bytes = [UInt8](unsafeUninitializedCapacity: count) { buffer, done in
      while done < count {
        let read = pread(number, buffer.baseAddress! + done, count - done, off_t(offset + done))
        guard read > 0 else { break }
        done += read
      }
    }
    return bytes.count == count ? bytes : nil
  }

  /// Forgets the events up to a place that the operator has acknowledged.
  ///
  /// A place that is not in this chain changes nothing: the operator then has another chain, and needs all of this one.
  mutating func forget(upTo place: EventPlace) {
    guard let index = entries.firstIndex(where: { $0.place == place }) else { return }
    entries.removeFirst(index + 1)
    compact()
  }

  /// Rewrites the file when most of it is no longer needed. If that fails, the file stays as it is.
  private mutating func compact() {
    guard let last else { return }
    let begin = entries.first?.offset ?? last.offset
    guard begin >= Self.slack, begin > size - begin, !isTorn, let rest = bytes(from: begin, count: size - begin) else {
      return
    }
    do throws(SystemError) {
      try Files.replace(path, with: rest, mode: 0o600)
      try open()
    } catch {
      // The file of that name may now be the new one or the old one.
      file = nil
      return reload()
    }
    size -= begin
    func moved(_ entry: Entry) -> Entry {
      Entry(place: entry.place, offset: entry.offset - begin, length: entry.length)
    }
    entries = entries.map(moved)
    self.last = moved(last)
  }

  /// Reads the file again after a failed rewrite, and keeps the waiting events.
  private mutating func reload() {
    let first = entries.first?.place
    (entries, last, size, isTorn) = ([], nil, 0, false)
    _ = load()
    guard let first, let index = entries.firstIndex(where: { $0.place == first }) else {
      if first == nil { entries = [] }
      return
    }
    entries.removeFirst(index)
  }
}
