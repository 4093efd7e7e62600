import Bluetooth
import Domain
import Glibc
import Ranging
import SystemIO
import TestSupport
import Testing

@Suite("radios that are recorded")
struct RecordingRadioTests {
  private let folder: TemporaryFolder
  private var path: String { "\(folder.path)/capture" }

  init() throws { folder = try TemporaryFolder() }

  /// Tells what it was given, one after the other, whatever it is asked.
  private final class Script: Radio {
    let start: UnixTime
    private var events: ArraySlice<RadioEvent>
    private(set) var isClosed = false

    init(start: Int64, _ events: [RadioEvent]) {
      self.start = UnixTime(microseconds: start)
      self.events = events[...]
    }

    func next(until deadline: UnixTime?) throws(RadioError) -> RadioEvent {
      guard let event = events.popFirst() else { throw .interrupted }
      return event
    }

    func close() { isClosed = true }
  }

  private func time(_ microseconds: Int64) -> UnixTime { UnixTime(microseconds: microseconds) }

  private func advertisement(at microseconds: Int64, rssi: Int8? = -60, bytes count: Int = 30) -> Advertisement {
    Advertisement(
      time: time(microseconds), address: DeviceAddress(0xC605_0403_0201, isRandom: true), rssi: rssi,
      data: [UInt8](repeating: 0xAA, count: count))
  }

  @Test("hand on what they are told, and are replayed with the same times, to the microsecond")
  func replay() throws {
    let events: [RadioEvent] = [
      .heard(advertisement(at: 1_700_000_000_000_001)), .heard(advertisement(at: 1_700_000_000_000_002, rssi: nil)),
    ]
    let recording = try RecordingRadio(Script(start: 1_700_000_000_000_000, events), to: path)
    #expect(recording.start == time(1_700_000_000_000_000))
    for event in events { #expect(try recording.next(until: nil) == event) }
    let replay = try RadioSpec.btsnoop(path).open()
    #expect(replay.start == recording.start)
    for event in events { #expect(try replay.next(until: nil) == event) }
    #expect(try replay.next(until: nil) == .ended(time(1_700_000_000_000_002)))
  }

  @Test("are replayed with deadlines that pass at the same times, also where nothing was heard")
  func deadlines() throws {
    let events: [RadioEvent] = [
      .deadline(time(11)), .heard(advertisement(at: 15)), .deadline(time(22)), .deadline(time(31)),
      .heard(advertisement(at: 33)), .ended(time(38)),
    ]
    let recording = try RecordingRadio(Script(start: 5, events), to: path)
    for event in events { #expect(try recording.next(until: nil) == event) }
    let replay = try RadioSpec.btsnoop(path).open()
    #expect(replay.start == time(5))
    for (event, deadline) in zip(events, [10, 20, 20, 30, 40, 40] as [Int64]) {
      #expect(try replay.next(until: time(deadline)) == event)
    }
  }

  @Test("keep every byte that a report can hold, legacy or extended", arguments: [0, 1, 31, 32, 229])
  func lengths(count: Int) throws {
    let event = RadioEvent.heard(advertisement(at: 1, rssi: -127, bytes: count))
    let recording = try RecordingRadio(Script(start: 0, [event]), to: path)
    _ = try recording.next(until: nil)
    #expect(try RadioSpec.btsnoop(path).open().next(until: nil) == event)
  }

  @Test("write exactly these bytes")
  func bytes() {
    let beacon = Advertisement(
      time: time(1), address: DeviceAddress(0xC605_0403_0201, isRandom: true), rssi: -60, data: [2, 1, 6])
    // Lengths, flags, drops, time.
    let header: [UInt8] =
      [0, 0, 0, 18, 0, 0, 0, 18, 0, 0, 0, 3, 0, 0, 0, 0] + [0x00, 0xDC, 0xDD, 0xB3, 0x0F, 0x2F, 0x80, 1]
    #expect(
      BTSnoopEncoder.record(of: beacon) == header
        // H4 event, LE Meta, 15 bytes, LE Advertising Report, 1 report: ADV_NONCONN_IND, random address.
        + [0x04, 0x3E, 0x0F, 0x02, 0x01, 0x03, 0x01, 0x01, 0x02, 0x03, 0x04, 0x05, 0xC6, 0x03, 2, 1, 6, 0xC4])
    #expect(BTSnoopEncoder.mark(at: time(1)).suffix(6) == [0x04, 0x0E, 0x03, 0x01, 0x00, 0x00])
  }

  @Test("never write over a file, and close the radio that they were to record")
  func exists() throws {
    _ = try folder.capture([1, 2, 3])
    let script = Script(start: 0, [])
    #expect(throws: RadioError.file(SystemError("save to", path, code: EEXIST))) {
      try RecordingRadio(script, to: path)
    }
    #expect(script.isClosed)
    #expect(try Files.read(path) == [1, 2, 3])
  }
}
