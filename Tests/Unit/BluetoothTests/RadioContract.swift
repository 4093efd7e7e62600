import Bluetooth
import Domain
import Glibc
import Ranging
import SystemIO
import Testing

/// What holds for every radio, in front of the same beacons: minors 1 and 2 at -60 dBm, and 3, of which the RSSI is
/// not available.
struct RadioContract {
  /// The same for `beaconctl`, 20 times a second each. What comes first is no beacon: it is sent while the scan is
  /// being started, and who hears it there is chance.
  ///
  /// - Parameters:
  ///   - seconds: how long they are on the air, from the beginning of a scan.
  ///   - hasBattery: whether the charge of a battery follows the measured power, as some makers have it.
  static func scenario(seconds: Int = 1_000_000, hasBattery: Bool = false) -> String {
    let uuid = "5f3c1c0e7a0b4f579a551f0f6c1b2a90"
    let beacons = [(1, "-60"), (2, "-60"), (3, "127")].map { minor, rssi in
      // Flags, then manufacturer's data of Apple's: a beacon of 21 bytes, and one more.
      hasBattery
        ? "raw C0:00:00:00:00:0\(minor) rnd 50 3 0201061bff4c000215\(uuid)0001000\(minor)c564 \(rssi) 0 \(seconds)\n"
        : "ibeacon C0:00:00:00:00:0\(minor) rnd 50 \(uuid) 1 \(minor) -59 \(rssi) 0 \(seconds)\n"
    }
    return "raw 00:11:22:33:44:55 pub 50 0 0201060303aafe -50 0 \(seconds)\n" + beacons.joined()
  }

  /// Which of the beacons it tells of.
  var minors: Set<UInt16> = [1, 2, 3]
  let open: @Sendable (Interruption?) throws -> any Radio

  private func minor(_ advertisement: Advertisement) -> UInt16? { advertisement.iBeacon?.minor }

  private func seconds(_ count: Double, after time: UnixTime) -> UnixTime {
    UnixTime(microseconds: time.microseconds + Int64(count * 1e6))
  }

  /// What a live radio does from beginning to end. It is left to go out of scope, or closed.
  func checkLive() throws {
    let before = WallClock.microseconds
    let radio = try open(nil)
    let start = radio.start
    #expect((before...WallClock.microseconds).contains(start.microseconds), "it starts at opening")
    try hearAll(radio)
    try waitOnTime(radio)
    radio.close()
    radio.close()
  }

  /// What a capture of the beacons does.
  func checkCapture() throws {
    let radio = try open(nil)
    try hearAll(radio)
    guard case .ended(let end) = try radio.next(until: nil) else { return #expect(Bool(false), "it ends") }
    #expect(end >= radio.start)
    #expect(try radio.next(until: seconds(1, after: end)) == .ended(end), "and stays ended")
    radio.close()
    radio.close()
  }

  /// A signal ends the wait, whatever there is to hear, and the radio can still be closed.
  func checkInterruption() throws {
    let isOpen = try Wakeup()
    try Thread.withSignal(SIGTERM, after: isOpen) { [open] interruption in
      let radio = try open(interruption)
      isOpen.signal()
      #expect(throws: RadioError.interrupted) { while true { _ = try radio.next(until: nil) } }
      #expect(throws: RadioError.interrupted, "also the next wait") { while true { _ = try radio.next(until: nil) } }
      radio.close()
    }
  }

  /// Every beacon is told, in order, with its RSSI.
  private func hearAll(_ radio: any Radio) throws {
    var heard: Set<UInt16> = []
    var last = radio.start
    while heard != minors {
      guard case .heard(let advertisement) = try radio.next(until: seconds(60, after: radio.start)) else {
        return #expect(heard == minors, "not all were heard in 60 s")
      }
      #expect(advertisement.time >= last, "in order")
      last = advertisement.time
      guard let minor = minor(advertisement) else { continue }
      #expect(minors.contains(minor))
      #expect(advertisement.address == DeviceAddress(0xC000_0000_0000 + UInt64(minor), isRandom: true))
      #expect(advertisement.rssi == (minor == 3 ? nil : -60))
      heard.insert(minor)
    }
  }

  /// Deadlines are inclusive, told on time, and divide what was heard before from what is heard after.
  private func waitOnTime(_ radio: any Radio) throws {
    var told = radio.start
    for tick in 1...5 {
      let deadline = seconds(Double(tick) * 0.1, after: UnixTime(microseconds: WallClock.microseconds))
      wait: while true {
        switch try radio.next(until: deadline) {
        case .heard(let advertisement):
          #expect(advertisement.time <= deadline)
          #expect(advertisement.time >= told)
        case .deadline(let time):
          #expect(time >= deadline)
          told = time
          break wait
        case .ended: return #expect(Bool(false), "a live radio does not end")
        }
      }
    }
    guard case .deadline = try radio.next(until: radio.start) else {
      return #expect(Bool(false), "a deadline that has passed is told at once")
    }
  }
}
