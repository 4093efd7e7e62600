package import Domain
import Glibc
import SystemIO

/// Wraps another radio, and writes every event to a btsnoop file before passing it on.
///
/// The file preserves the radio's clock: it has a mark at the radio's start, at each passed deadline, and at the
/// radio's end. So a replay with the same deadlines gives the same answers at the same times.
package final class RecordingRadio: Radio {
  private let radio: any Radio
  private let path: String
  private let file: Descriptor
  /// The size of the complete records, bytes.
  private var length: off_t = 0

  /// - Parameter path: the file must not exist yet. Only its owner may read it, because it shows who was near.
  /// - Throws: `RadioError.file`; then the radio is closed.
  package init(_ radio: any Radio, to path: String) throws(RadioError) {
    self.radio = radio
    self.path = path
    do {
      file = try Descriptor.open(path, O_WRONLY | O_CREAT | O_EXCL, mode: 0o600)
    } catch {
      radio.close()
      throw .file(SystemError("save to", path, code: error.code))
    }
    do {
      try write(BTSnoopEncoder.fileHeader)
      try write(BTSnoopEncoder.mark(at: radio.start))
    } catch {
      // An empty file would obstruct the next attempt.
      unlink(path)
      radio.close()
      throw error
    }
  }

  package var start: UnixTime { radio.start }

  /// - Throws: also `RadioError.file` if the record cannot be written; the file then ends with the record before.
  package func next(until deadline: UnixTime?) throws(RadioError) -> RadioEvent {
    let event = try radio.next(until: deadline)
    switch event {
    case .heard(let advertisement): try write(BTSnoopEncoder.record(of: advertisement))
    case .deadline(let time), .ended(let time): try write(BTSnoopEncoder.mark(at: time))
    }
    return event
  }

  package func close() { radio.close() }

  private func write(_ record: [UInt8]) throws(RadioError) {
    do {
      try file.write(record, path)
      length += off_t(record.count)
    } catch {
      // The file can be replayed once the partial record is cut off.
      ftruncate(file.number, length)
      throw .file(SystemError("save to", path, code: error.code))
    }
  }
}
