import Bluetooth
import Domain
import Glibc
import Ranging
import SystemIO
import TestSupport
import Testing

@Suite("radios that replay a capture")
struct CaptureRadioTests {
  private let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  private func open(_ capture: Capture) throws -> any Radio {
    try RadioSpec.btsnoop(folder.capture(capture.bytes)).open()
  }

  private func time(_ microseconds: Int64) -> UnixTime { UnixTime(microseconds: microseconds) }

  /// The minors heard until something else is told.
  private func hear(_ radio: any Radio, until deadline: Int64? = nil) throws -> (minors: [UInt16], then: RadioEvent) {
    var minors: [UInt16] = []
    while true {
      let event = try radio.next(until: deadline.map { time($0) })
      guard case .heard(let advertisement) = event else { return (minors, event) }
      minors.append(try #require(advertisement.iBeacon).minor)
    }
  }

  @Test("tell what was heard, with the capture's times")
  func contents() throws {
    var capture = Capture()
    capture.add(Packet.command, at: 1_000_000, flags: 2)
    capture.add(Packet.report(minor: 7), at: 2_000_000)
    let radio = try open(capture)
    #expect(radio.start == time(1_000_000))
    guard case .heard(let advertisement) = try radio.next(until: nil) else { return #expect(Bool(false)) }
    #expect(advertisement.time == time(2_000_000))
    #expect(advertisement.address.description == "C0:00:00:00:00:01")
    #expect(advertisement.rssi == -60)
    #expect(advertisement.iBeacon?.minor == 7)
    #expect(try radio.next(until: nil) == .ended(time(2_000_000)))
    #expect(try radio.next(until: time(9_000_000)) == .ended(time(2_000_000)))
  }

  @Test("tell beacons whose makers put bytes behind the power, in reports of either kind")
  func bytesBehind() throws {
    var capture = Capture()
    // A legacy advertisement has 31 bytes, which leaves room for four.
    for behind in 0...4 { capture.add(Packet.report(minor: UInt8(behind), behind: behind), at: Int64(behind)) }
    for behind in 0...5 {
      capture.add(Packet.extendedReport(minor: UInt8(10 + behind), behind: behind), at: Int64(10 + behind))
    }
    #expect(try hear(open(capture)) == ([0, 1, 2, 3, 4, 10, 11, 12, 13, 14, 15], .ended(time(15))))
  }

  @Test("tell the deadline when the capture's clock has passed it, and not before what was heard until then")
  func deadlines() throws {
    var capture = Capture()
    capture.add(Packet.command, at: 0, flags: 2)
    capture.add(Packet.reports(minors: [1, 2]), at: 100)
    capture.add(Packet.report(minor: 3), at: 200)
    capture.add(Packet.command, at: 350, flags: 2)
    capture.add(Packet.report(minor: 4), at: 1000)
    let radio = try open(capture)
    #expect(try hear(radio, until: 50) == ([], .deadline(time(100))))
    #expect(try hear(radio, until: 100) == ([1, 2], .deadline(time(200))))
    #expect(try hear(radio, until: 300) == ([3], .deadline(time(350))))
    // Nothing was heard for a while, but time passes.
    #expect(try hear(radio, until: 400) == ([], .deadline(time(1000))))
    #expect(try hear(radio, until: 500) == ([], .deadline(time(1000))))
    #expect(try hear(radio, until: 2000) == ([4], .ended(time(1000))))
  }

  @Test("keep the clock of the recording, even where it was set back")
  func clockSetBack() throws {
    var capture = Capture()
    capture.add(Packet.report(minor: 1), at: 5000)
    capture.add(Packet.report(minor: 2), at: 1000)
    let radio = try open(capture)
    #expect(try hear(radio, until: 6000) == ([1, 2], .ended(time(1000))))
  }

  @Test("end at once when nothing was recorded")
  func nothing() throws {
    let radio = try open(Capture())
    #expect(radio.start == time(0))
    #expect(try radio.next(until: time(1)) == .ended(time(0)))
  }

  @Test("tell everything that is before the damage, and then where it is")
  func damage() throws {
    var capture = Capture()
    capture.add(Packet.report(minor: 1), at: 1)
    capture.add(Packet.report(minor: 2), at: 2)
    let whole = capture.bytes.count
    capture.add(Packet.report(minor: 3), at: 3)
    let path = try folder.capture(Array(capture.bytes.prefix(whole + 30)))
    let radio = try RadioSpec.btsnoop(path).open()
    var minors: [UInt16] = []
    let missing = Packet.report().count - 6
    let error = RadioError.damaged(
      path: path, offset: UInt64(whole + 30), expected: "\(missing) more bytes of the record at byte \(whole)")
    for _ in 0..<2 {
      #expect(throws: error) {
        while case .heard(let advertisement) = try radio.next(until: nil) {
          minors.append(advertisement.iBeacon?.minor ?? 0)
        }
      }
    }
    #expect(minors == [1, 2])
  }

  @Test("are refused at opening when the file is not there, or is something else")
  func refused() throws {
    #expect(throws: RadioError.file(SystemError("open", "/nonexistent", code: ENOENT))) {
      try RadioSpec.btsnoop("/nonexistent").open()
    }
    #expect(throws: RadioError.file(SystemError("read", folder.path, code: EISDIR))) {
      try RadioSpec.btsnoop(folder.path).open()
    }
    let path = try folder.capture(Array("\n\r\r\n".utf8))
    #expect(throws: RadioError.notACapture(path: path, reason: "it is pcapng")) {
      try RadioSpec.btsnoop(path).open()
    }
  }

  @Test("hear all of a capture that is much longer than what is read at a time")
  func long() throws {
    var capture = Capture()
    for index in 0..<10_000 as Range<Int64> { capture.add(Packet.report(minor: UInt8(index % 256)), at: index) }
    #expect(capture.bytes.count > 5 * 65536)
    let (minors, then) = try hear(open(capture))
    #expect(minors == (0..<10_000).map { UInt16($0 % 256) })
    #expect(then == .ended(time(9999)))
  }

  /// Time that passes where a radio waits, and in no other place.
  private final class PlayedClock {
    private let began = Instant.now
    private let delay: Duration
    private var time = Duration.zero

    /// - Parameter delay: how much later than it should each wait ends.
    init(delay: Duration = .zero) { self.delay = delay }

    /// Microseconds.
    var passed: Double { (time.inSeconds * 1e6).rounded() }

    func radio(_ recording: any Radio, speed: Double) -> PacedRadio {
      PacedRadio(
        recording, speed: speed, now: { [self] in began + time },
        pause: { [self] due in time = max(time, began.duration(to: due) + delay) })
    }
  }

  @Test(
    "play in their own time where somebody looks, or faster, and tell the same; delays do not add up",
    arguments: [(1.0, 0.0), (100.0, 0.0), (0.5, 0.0), (1.0, 10_000.0)])
  func paced(speed: Double, delay: Double) throws {
    let clock = PlayedClock(delay: .microseconds(delay))
    let radio = try clock.radio(open(threeReports), speed: speed)
    #expect(radio.start == time(0))
    #expect(try hear(radio, until: 300_000) == ([1, 2], .deadline(time(400_000))))
    #expect(clock.passed == 300_000 / speed + delay)
    #expect(try hear(radio, until: 500_000) == ([3], .ended(time(400_000))))
    #expect(clock.passed == 400_000 / speed + delay)
  }

  @Test("wait for it on the kernel's clock")
  func reallyPaced() throws {
    let began = Instant.now
    #expect(try hear(PacedRadio(open(threeReports), speed: 2, nil)) == ([1, 2, 3], .ended(time(400_000))))
    #expect(began.duration(to: .now) >= .milliseconds(200))
  }

  private var threeReports: Capture {
    var capture = Capture()
    capture.add(Packet.report(minor: 1), at: 0)
    capture.add(Packet.report(minor: 2), at: 250_000)
    capture.add(Packet.report(minor: 3), at: 400_000)
    return capture
  }

  @Test("leave a long gap out where somebody looks, and a clock that was set back")
  func gaps() throws {
    var capture = Capture()
    capture.add(Packet.report(minor: 1), at: 3_600_000_000)
    capture.add(Packet.report(minor: 2), at: 10_800_000_000)
    capture.add(Packet.report(minor: 3), at: 1_000)
    let clock = PlayedClock()
    #expect(try hear(clock.radio(open(capture), speed: 1)) == ([1, 2, 3], .ended(time(1_000))))
    #expect(clock.passed == 0)
  }

  @Test("end at a signal where somebody looks")
  func pacedInterrupted() throws {
    var capture = Capture()
    capture.add(Packet.report(minor: 1), at: 0)
    capture.add(Packet.report(minor: 2), at: 1_900_000)
    let interruption = try Interruption.manual()
    interruption.interrupt()
    let radio = try PacedRadio(open(capture), speed: 0.1, interruption)
    #expect(throws: RadioError.interrupted) { try hear(radio) }
  }

  @Test("wait for a pipe that is slow")
  func slowPipe() throws {
    let path = "\(folder.path)/pipe"
    #expect(mkfifo(path, 0o600) == 0)
    var capture = Capture()
    capture.add(Packet.report(minor: 1), at: 1)
    capture.add(Packet.report(minor: 2), at: 2)
    let bytes = capture.bytes
    let writer = Thread {
      guard let pipe = try? Descriptor.open(path, O_WRONLY) else { return }
      for start in stride(from: 0, to: bytes.count, by: 23) {
        try? pipe.write(bytes[start..<min(start + 23, bytes.count)])
        usleep(2000)
      }
    }
    defer { writer.join() }
    #expect(try hear(RadioSpec.btsnoop(path).open()) == ([1, 2], .ended(time(2))))
  }

  @Test("stop waiting for a pipe when a signal arrives")
  func interrupted() throws {
    let path = "\(folder.path)/pipe"
    #expect(mkfifo(path, 0o600) == 0)
    let writer = try Descriptor.open(path, O_RDWR)
    try writer.write(Capture().bytes)
    let atOnce = try Wakeup()
    atOnce.signal()
    try Thread.withSignal(SIGTERM, after: atOnce) { interruption in
      #expect(throws: RadioError.interrupted) { try RadioSpec.btsnoop(path).open(interruption: interruption) }
    }
  }
}
