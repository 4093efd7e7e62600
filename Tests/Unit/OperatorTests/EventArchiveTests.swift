import Domain
import Glibc
import StepProtocol
import SystemIO
import TestSupport
import Testing

@testable import Operator

@Suite("A vehicle's stored events") struct EventArchiveTests {
  private let folder = try! TemporaryFolder()
  private let key = SigningKey()
  private var archive: EventArchive { EventArchive(path: folder.path + "/events/car.jwt") }

  private func event(_ sequence: Int64, after previous: EventDigest = .random()) -> [UInt8] {
    let event = VehicleEvent(
      vehicle: UUID("5f3c1c0e-7a0b-4f57-9a55-1f0f6c1b2a90")!, sequence: sequence, previous: previous,
      .init(.began, time: sequence))
    return Array(event.signed(by: key).utf8)
  }

  /// Whole lines.
  private func text(_ sequences: ClosedRange<Int64>) -> [UInt8] {
    var bytes: [UInt8] = []
    for sequence in sequences { bytes += event(sequence) + [0x0A] }
    return bytes
  }

  private func write(_ lines: [[UInt8]]) throws {
    _ = try archive.writer()
    try Files.replace(archive.path, with: lines.flatMap { $0 + [0x0A] }, mode: 0o600)
  }

  private func sequences() throws -> [Int64] {
    var found: [Int64] = []
    try archive.read(verifiedBy: key.verificationKey) { found.append($0.event.sequence) }
    return found
  }

  @Test("lines that lie across what is read at once are whole")
  func chunks() throws {
    // Some hundred kilobytes, so that lines begin and end at every place of a piece.
    let lines = (1...1000).map { event(Int64($0)) }
    try write(lines)
    #expect(try sequences() == Array(1...1000))
    #expect(try archive.last()?.event.sequence == 1000)
  }

  @Test("a file may be larger than memory: its end is found, and added to")
  func large() throws {
    let first = event(1)
    try write([first])
    // Two gigabytes that take no room, and more lines behind them than are written at once.
    let file = try Descriptor.open(archive.path, O_WRONLY)
    let size = off_t(2) << 30
    let lines: [UInt8] = [0x0A] + text(2...400)
    #expect(pwrite(file.number, lines, lines.count, size) == lines.count)
    let writer = try archive.writer()
    #expect(try archive.last()?.event.sequence == 400)
    let next = event(401)
    try writer.append([SignedEvent(kept: next)])
    #expect(try archive.last()?.event.sequence == 401)
    // The zeros are no event. They are refused when they are more than a line can be, and not when all are read.
    #expect(throws: EventError.self) { try sequences() }
  }

  @Test(
    "a line without an end is cut off when the file is opened to be added to, and read by nobody", arguments: [1, 40])
  func torn(count: Int) throws {
    try write([event(1), event(2)])
    let whole = try Files.read(archive.path)
    try Files.replace(archive.path, with: whole + event(3).prefix(count), mode: 0o600)
    #expect(try sequences() == [1, 2])
    #expect(try archive.last()?.event.sequence == 2)
    _ = try archive.writer()
    #expect(try Files.read(archive.path) == whole)
  }

  @Test("of a write that a power cut tore, nothing counts from the first zeros on")
  func zeros() throws {
    let (lines, torn) = (text(1...2), text(3...5))
    for sector in 0..<torn.count / 512 {
      try write([event(1), event(2)])
      var bytes = torn
      for index in sector * 512..<(sector + 1) * 512 { bytes[index] = 0 }
      try Files.replace(archive.path, with: lines + bytes, mode: 0o600)
      let kept = bytes.prefix { $0 != 0 }.count { $0 == 0x0A }
      #expect(try sequences() == Array(1...Int64(2 + kept)), "sector \(sector)")
      #expect(try archive.last()?.event.sequence == Int64(2 + kept))
      _ = try archive.writer()
      #expect(try archive.last()?.event.sequence == Int64(2 + kept))
      #expect(try sequences() == Array(1...Int64(2 + kept)))
    }
  }

  @Test("zeros before whole lines are damage, if there are more of these than are written at once")
  func damaged() throws {
    try write([event(1)])
    let bytes = try Files.read(archive.path) + [0, 0x0A] + text(2...400)
    try Files.replace(archive.path, with: bytes, mode: 0o600)
    #expect(throws: EventError.self) { try sequences() }
    #expect(try archive.last()?.event.sequence == 400)
  }

  @Test("a changed line is named by its number")
  func changed() throws {
    try write([event(1), event(2), Array("rubbish".utf8), event(3)])
    do {
      _ = try sequences()
      Issue.record("it was read")
    } catch EventError.damaged(let path, let line, _) {
      #expect(path == archive.path)
      #expect(line == 3)
    }
  }
}
