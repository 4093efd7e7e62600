import Bluetooth
import Domain
import Encoding
import Glibc
import StepController
import StepProtocol
import Synchronization
import SystemIO

enum LinkEvent: Sendable {
  /// Links are taken, or can no longer be.
  case listening
  case failed(RadioError)
  /// The vehicle can be found, or no longer.
  case sending
  case silent(RadioError)
  /// A link has ended.
  case ended(wasRiders: Bool)
}

/// Takes riders' links on an adapter, until it is closed: whole frames go to the opener, answers come from the loop.
///
/// A stranger gets no byte, and can hold no link for long: a link that no rider has used makes room for a new one, and
/// ends by itself. Two threads use the adapter, one for the links and one for the advertisement.
final class LinkListener: Sendable {
  struct Limits: Sendable {
    var links = 4
    /// From the beginning of a link to its first whole frame, and to the first command of a rider.
    var frame = Duration.seconds(3)
    var command = Duration.seconds(10)
    /// From one frame of a rider to the next.
    var idle = Duration.seconds(70)
    /// After so long without a new command, a rider's link makes room for a new one, too.
    var spare = Duration.seconds(10)
    /// How many messages that are no rider's may come before a link ends.
    var strangers = 4
    /// How many frames of a rider's link may wait for the opener. Of another link only one may.
    var waiting = 8
  }

  /// A frame that came on a link.
  struct Arrival: Sendable {
    let link: Int
    let frame: LinkFrame
    /// How strong the link is, dBm; nil if that is not measured.
    let level: Int8?
  }

  /// What the opener makes of an arrival.
  enum Verdict: Sendable {
    /// A command of a rider, or an older one once more.
    case riders(isNew: Bool)
    case strangers
  }

  fileprivate enum Order: Sendable {
    case send([UInt8], to: Int)
    case judge(Verdict, of: Int)
  }

  let adapter: UInt16
  let events: Mailbox<LinkEvent>
  let arrivals: Mailbox<Arrival>
  private let orders: Mailbox<Order>
  private let links: WorkerThread
  private let advertising: WorkerThread

  /// Starts both threads.
  ///
  /// - Parameter measures: whether to measure how strong links are.
  init(_ adapter: UInt16, key: EncryptionKey, measures: Bool) throws {
    self.adapter = adapter
    (events, arrivals, orders) = (try Mailbox(), try Mailbox(), try Mailbox())
    (links, advertising) = (try WorkerThread(), try WorkerThread())
    let handles = Shared<Set<UInt16>>([])
    try links.start { [events, arrivals, orders, stop = links.stop] in
      let meter = measures ? LinkMeter(adapter: adapter) : nil
      guard let loop = try? LinkLoop(adapter, Limits(), events, arrivals, handles, meter) else { return }
      loop.run(orders, until: stop)
    }
    try advertising.start { [events, stop = advertising.stop] in
      Self.advertise(adapter, key, handles, events, until: stop)
    }
  }

  /// Sends a frame. If the link has ended, nothing happens.
  func send(_ frame: LinkFrame, to link: Int) { orders.post(.send(frame.bytes, to: link)) }

  /// Must be called once for each arrival.
  func judge(_ verdict: Verdict, of link: Int) { orders.post(.judge(verdict, of: link)) }

  /// Ends all links and the advertisement, and waits for that.
  func close() {
    links.stop.interrupt()
    advertising.close()
    links.close()
  }

  /// Runs on its thread: advertises the vehicle's present name, so that devices with its encryption key can find it.
  /// Tries again after a failure.
  private static func advertise(
    _ adapter: UInt16, _ key: EncryptionKey, _ handles: Shared<Set<UInt16>>, _ events: Mailbox<LinkEvent>,
    until stop: Interruption
  ) {
    var backoff = Backoff()
    var reported: RadioError?
    var isFirst = true
    while true {
      let begun = Instant.now
      do throws(RadioError) {
        let advertiser = try LinkAdvertiser(adapter: adapter, interruption: stop)
        while true {
          let now = WallClock.seconds
          // The clock may be set: the name is looked up again soon.
          let left = min(LinkName.period - now % LinkName.period, 60)
          try advertiser.advertise(LinkName.at(now, of: key), until: .now + .seconds(left)) {
            if isFirst || reported != nil { events.post(.sending) }
            (isFirst, reported) = (false, nil)
          } hasChannel: { handle in
            handles.value.withLock { $0.contains(handle) }
          }
        }
      } catch {
        if error == .interrupted { return }
        if error != reported { events.post(.silent(error)) }
        reported = error
      }
      let due = Instant.now + backoff.next(afterLasting: begun.duration(to: .now), chance: Double.random(in: 0...1))
      if (try? waitReadable([stop.number], until: due)[0]) ?? true { return }
    }
  }
}

/// Runs on the thread of the links.
private final class LinkLoop {
  private final class Link {
    let channel: LinkChannel
    let handle: UInt16?
    let begun = Instant.now
    var frames = Frames(longest: LinkFrame.longest)
    var registration: Registration?
    /// Set while something waits to be sent.
    var sending: Registration?
    /// Whole frames so far.
    var count = 0
    /// When the last frame came; for a rider's link, the last one of a rider.
    var last = Instant.now
    /// When the last new command of a rider came; nil before the first.
    var proven: Instant?
    /// Frames that are not judged yet, and messages that were no rider's.
    var (waiting, strangers) = (0, 0)

    init(_ channel: LinkChannel) { (self.channel, handle) = (channel, channel.handle) }
  }

  private let adapter: UInt16
  private let limits: LinkListener.Limits
  private let events: Mailbox<LinkEvent>
  private let arrivals: Mailbox<LinkListener.Arrival>
  /// The connections below the links.
  private let handles: Shared<Set<UInt16>>
  private let meter: LinkMeter?
  private let loop: EventLoop
  private var acceptor: (LinkAcceptor, Registration)?
  private var links: [Int: Link] = [:]
  private var lastNumber = 0
  private var backoff = Backoff()
  private var reported: RadioError?

  init(
    _ adapter: UInt16, _ limits: LinkListener.Limits, _ events: Mailbox<LinkEvent>,
    _ arrivals: Mailbox<LinkListener.Arrival>, _ handles: Shared<Set<UInt16>>, _ meter: LinkMeter?
  ) throws {
    (self.adapter, self.limits, self.events, self.arrivals) = (adapter, limits, events, arrivals)
    (self.handles, self.meter) = (handles, meter)
    loop = try EventLoop()
  }

  func run(_ orders: Mailbox<LinkListener.Order>, until stop: Interruption) {
    do {
      try loop.watch(stop.number) { [unowned self] in loop.stop() }
      try loop.receive(orders) { [unowned self] in obey($0) }
      listen()
      look()
      try loop.run()
    } catch {
      events.post(.failed(.adapter(SystemError("wait for", "Bluetooth links", code: EIO))))
    }
  }

  private func listen() {
    do throws(RadioError) {
      let acceptor = try LinkAcceptor(adapter: adapter)
      guard let registration = try? loop.watch(acceptor.descriptor, { [unowned self] in connected() }) else { return }
      self.acceptor = (acceptor, registration)
      reported = nil
      events.post(.listening)
    } catch {
      if error != reported { events.post(.failed(error)) }
      reported = error
      let pause = backoff.next(afterLasting: .zero, chance: Double.random(in: 0...1))
      loop.schedule(at: .now + pause) { [unowned self] in listen() }
    }
  }

  private func connected() {
    guard let channel = acceptor?.0.next(), makeRoom() else { return }
    lastNumber += 1
    let link = Link(channel)
    links[lastNumber] = link
    if let handle = link.handle { _ = handles.value.withLock { $0.insert(handle) } }
    watch(lastNumber, link)
  }

  /// Ends the link that matters least, if there is no room: the oldest that no rider has used, or else the one whose
  /// rider has said nothing new for the longest time.
  ///
  /// - Returns: false if there is no such link.
  private func makeRoom() -> Bool {
    guard links.count >= limits.links else { return true }
    let stranger = links.filter { $0.value.proven == nil }.min { $0.value.begun < $1.value.begun }
    let rider = links.filter { $0.value.proven.map { $0 + limits.spare <= .now } ?? false }
      .min { $0.value.last < $1.value.last }
    guard let victim = stranger ?? rider else { return false }
    end(victim.key)
    return true
  }

  private func watch(_ number: Int, _ link: Link) {
    link.registration = try? loop.watch(link.channel.descriptor) { [unowned self, unowned link] in
      do {
        link.frames.append(try link.channel.read())
        try pass(number, link)
      } catch {
        end(number)
      }
    }
  }

  /// Passes on as many frames as may wait. The rest stays where it is, and the other side has to wait.
  private func pass(_ number: Int, _ link: Link) throws {
    let most = link.proven == nil ? 1 : limits.waiting
    while link.waiting < most, let bytes = try link.frames.next() {
      link.count += 1
      if link.proven == nil { link.last = .now }
      // A kind of a later version, or one that only a vehicle sends.
      guard let frame = try LinkFrame(bytes), frame.kind != .answer else { continue }
      link.waiting += 1
      let level = link.handle.flatMap { meter?.level(of: $0) }
      arrivals.post(.init(link: number, frame: frame, level: level))
    }
    if link.waiting < most {
      if link.registration?.isActive != true { watch(number, link) }
    } else {
      link.registration?.cancel()
    }
  }

  private func obey(_ order: LinkListener.Order) {
    switch order {
    case .send(let bytes, let number):
      guard let link = links[number] else { return }
      do {
        try link.channel.write(bytes)
        try send(number, link)
      } catch {
        end(number)
      }
    case .judge(let verdict, let number):
      guard let link = links[number] else { return }
      link.waiting -= 1
      switch verdict {
      case .riders(let isNew):
        if isNew { link.proven = .now }
        link.last = .now
      case .strangers:
        link.strangers += 1
        if link.strangers >= limits.strangers { return end(number) }
      }
      do { try pass(number, link) } catch { end(number) }
    }
  }

  /// Sends what waits, as soon as the other side takes it.
  private func send(_ number: Int, _ link: Link) throws(LinkError) {
    guard try !link.channel.isSent(), link.sending == nil else { return }
    link.sending = loop.schedule(at: .now + LinkChannel.pause) { [unowned self, unowned link] in
      link.sending = nil
      do { try send(number, link) } catch { end(number) }
    }
  }

  /// Ends the links whose time is over.
  private func look() {
    let now = Instant.now
    for (number, link) in links {
      let end =
        link.proven != nil
        ? link.last + limits.idle : link.begun + (link.count == 0 ? limits.frame : limits.command)
      if end <= now { self.end(number) }
    }
    loop.schedule(at: now + .milliseconds(250)) { [unowned self] in look() }
  }

  private func end(_ number: Int) {
    guard let link = links.removeValue(forKey: number) else { return }
    link.registration?.cancel()
    link.sending?.cancel()
    if let handle = link.handle, !links.values.contains(where: { $0.handle == handle }) {
      _ = handles.value.withLock { $0.remove(handle) }
    }
    events.post(.ended(wasRiders: link.proven != nil))
  }
}
