import Encoding
import Tags
import NFC
import Domain
import StepProtocol
import SystemIO
import Terminal

/// A step's tag that was read: the step, and the proof of having been there.
struct TagSighting {
  let step: Step
  let uid: TagUID
  /// What was read, unchanged, as the proof gives it.
  let content: String
  /// When it was read.
  let time: ContinuousClock.Instant

  var proof: Proof { .tag(uid: uid, content: content) }

  /// Waits for a tag, and reads it.
  ///
  /// - Parameters:
  ///   - limit: seconds.
  ///   - progress: is told now and then how many seconds are left.
  /// - Throws: `NFCError` for what is wrong with the reader, `CommandFailure` for everything about the tag.
  static func find(
    _ vehicle: Vehicle, _ reader: NFCReader, limit: Double, progress: (Double) -> Void = { _ in }
  ) throws -> TagSighting {
    let reading: TagReading
    do {
      reading = try reader.readTag(until: .now + .milliseconds(Int64(limit * 1000))) { left in
        if let left { progress(left.inSeconds) }
      }
    } catch NFCError.noTag {
      throw CommandFailure.notLocated("no tag came in \(tenths(limit)) s")
    } catch NFCError.noAnswer {
      throw CommandFailure.notLocated("\(NFCError.noAnswer)")
    }
    return try TagSighting(reading, of: vehicle, at: .now)
  }

  /// - Throws: a `CommandFailure` for a tag that is not on a step of this vehicle.
  init(_ reading: TagReading, of vehicle: Vehicle, at time: ContinuousClock.Instant) throws {
    uid = reading.target.uid
    self.time = time
    let (name, content) = try Self.label(of: reading, vehicle)
    guard let step = name else {
      throw CommandFailure.notLocated("the tag names a step that \(printable(vehicle.name)) does not have")
    }
    // The vehicle would refuse it (the protocol's section 6). A dynamic tag proves by itself which one it is.
    guard step.tags.isEmpty || step.tags.contains(uid) || DynamicTag.isMeant(by: content) else {
      throw CommandFailure.notLocated(
        "the tag \(uid) says that it is the \(step.id) step's, but is none of those on it")
    }
    self.step = step
    self.content = content
  }

  /// The step that the first record names which is meant to name one; and that record's text.
  private static func label(of reading: TagReading, _ vehicle: Vehicle) throws -> (step: Step?, content: String) {
    let message: NDEFMessage
    do { message = try reading.content.get() } catch { throw CommandFailure.notLocated("\(error)") }
    if message.isEmpty { throw CommandFailure.notLocated("the tag is empty") }
    for record in message.records {
      do {
        if let text = try NDEFText(record)?.text {
          let label = try StepLabel(parsing: text)
          try check(label.vehicle, vehicle)
          return (label.step(in: vehicle), text)
        }
        if let uri = try NDEFURI(record)?.uri {
          let tag = try DynamicTag(parsing: uri)
          try check(tag.vehicle, vehicle)
          return (vehicle.step(tag.step), uri)
        }
      } catch StepLabel.ParsingError.notLabel {
        continue
      } catch DynamicTag.ParsingError.notDynamicTag {
        continue
      } catch let failure as CommandFailure {
        throw failure
      } catch {
        throw CommandFailure.notLocated("the tag holds \(error)")
      }
    }
    throw CommandFailure.notLocated("the tag holds something else than the name of a step")
  }

  private static func check(_ found: UUID, _ vehicle: Vehicle) throws {
    guard found == vehicle.uuid else {
      throw CommandFailure.notLocated("the tag is another vehicle's (\(found)), not one of \(printable(vehicle.name))")
    }
  }
}
