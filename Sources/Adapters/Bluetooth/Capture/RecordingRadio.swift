import Glibc
package import Domain
import SystemIO

/// Another radio, of which everything that it tells is written to a btsnoop file before it is handed on.
///
/// The file has the radio's clock: it begins with a mark at the radio's start, and has one wherever a deadline passed
/// or the radio ended. So whoever asks a replay for the same deadlines gets the same answers at the same times.
package final class RecordingRadio: Radio {
  private let radio: any Radio
  private let path: String
  private let file: Descriptor
  /// Bytes of whole records.
  private var length: off_t = 0

  /// - Parameter path: of a file that must not exist yet. Only its owner may read it: it tells who was near.
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
      // Nothing was saved, and an empty file would be in the way of the next attempt.
      unlink(path)
      radio.close()
      throw error
    }
  }

  package var start: UnixTime { radio.start }

  /// - Throws: also `RadioError.file`, when the record cannot be written; the file then ends with the one before.
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
      // Without the part of a record that still went in, the file can be replayed.
      ftruncate(file.number, length)
      throw .file(SystemError("save to", path, code: error.code))
    }
  }
}
