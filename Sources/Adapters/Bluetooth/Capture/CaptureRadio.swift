import Domain
import Glibc
import Ranging
import SystemIO

/// A recording, replayed as fast as it can be read. Only one chunk and one record of it are in memory.
final class CaptureRadio: Radio {
  private let path: String
  private let interruption: Interruption?
  private var file: Descriptor?

  private(set) var start = UnixTime(microseconds: 0)
  /// The time of the last record that was read.
  private var clock = UnixTime(microseconds: 0)

  private var decoder = BTSnoopDecoder()
  private var heard = HeardQueue()

  /// The buffer for one read.
  private let chunk = UnsafeMutableRawBufferPointer.allocate(byteCount: 65536, alignment: 1)

  /// Opens the capture and reads its header and its first record.
  ///
  /// - Parameter path: `-` is standard input.
  init(_ path: String, _ interruption: Interruption?) throws(RadioError) {
    self.path = path == "-" ? "standard input" : path
    self.interruption = interruption
    do {
      file =
        path == "-"
        ? Descriptor(adopting: try check("read", "standard input") { fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3) })
        // Non-blocking: a named pipe opens immediately, and a signal can end the later wait.
        : try Descriptor.open(path, O_RDONLY | O_NONBLOCK)
    } catch {
      throw .file(error)
    }
    if try readRecord() { start = clock }
  }

  func next(until deadline: UnixTime?) throws(RadioError) -> RadioEvent {
    while true {
      if let deadline, clock > deadline { return .deadline(clock) }
      if let advertisement = heard.popFirst() { return .heard(advertisement) }
      guard try readRecord() else { return .ended(clock) }
    }
  }

  func close() { file = nil }

  deinit { chunk.deallocate() }

  /// Moves on to the next record.
  ///
  /// - Returns: false at the end of the capture.
  private func readRecord() throws(RadioError) -> Bool {
    while true {
      let time = try reporting { () throws(BTSnoopDecoder.Defect) in
        try decoder.next { time, event in
          heard.add(event, heardAt: time)
          return time
        }
      }
      if let time {
        clock = time
        return true
      }
      if try !readChunk() {
        try reporting { () throws(BTSnoopDecoder.Defect) in try decoder.finish() }
        return false
      }
    }
  }

  /// Adds the file's path to a defect.
  private func reporting<Result>(
    _ decode: () throws(BTSnoopDecoder.Defect) -> Result
  ) throws(RadioError) -> Result {
    do {
      return try decode()
    } catch {
      switch error {
      case .notACapture(let reason): throw .notACapture(path: path, reason: reason)
      case .damaged(let offset, let expected): throw .damaged(path: path, offset: offset, expected: expected)
      }
    }
  }

  /// Waits for more of the file.
  ///
  /// - Returns: false when there is no more.
  private func readChunk() throws(RadioError) -> Bool {
    guard let number = file?.number else { preconditionFailure("a closed radio was asked") }
    _ = try waitReadable(number, of: path, until: nil, interruption)
    do {
      let count = try check("read", path) { read(number, chunk.baseAddress, chunk.count) }
      decoder.append(UnsafeRawBufferPointer(rebasing: chunk[..<count]))
      return count > 0
    } catch {
      throw .file(error)
    }
  }
}
