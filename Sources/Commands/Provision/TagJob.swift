import Domain
import NFC
import Provisioning
import StepProtocol
import SystemIO
import Tags
import Terminal

/// What is to be done with a tag.
struct TagJob {
  let reader: NFCReader
  let vehicle: Vehicle
  let step: Step
  let replacesAll: Bool
  let locks: Bool
  /// Whether nothing is written.
  let isRehearsal: Bool
  let register: TagRegister?
  /// The vehicle's folder, where the tag gets keys of its own; nil for a plain text.
  let dynamicIn: VehicleFolder?
  /// How long a tag may be away in the middle.
  let patience: Duration
  let progress: ProgressLine

  /// The end of a job that had begun to write.
  struct Unfinished: Error {
    let uid: TagUID
    /// What may be left behind: `may be empty`
    let state: String
    let cause: NFCError

    var advice: String { "the tag \(uid) \(state); run the command again with it" }
  }

  /// Waits for a tag, and does it.
  ///
  /// - Parameter tell: is told what a signal has left behind.
  func run(until deadline: ContinuousClock.Instant, tell: (String) -> Void) throws -> TagRecord {
    defer { progress.clear() }
    let target = try reader.waitForTag(until: deadline) { left in
      if let left { progress.show("waiting for a tag, \(Int(left.inSeconds)) s left") }
    }
    do {
      return try run(target)
    } catch let error as Unfinished where error.cause == .interrupted {
      progress.clear()
      tell("interrupted: \(error.advice)")
      throw error.cause
    }
  }

  /// Does it with the tag that was selected just now.
  ///
  /// - Returns: also when the tag was written and could not be listed, which is its `failure` then.
  /// - Throws: `Unfinished` when it is in doubt what the tag holds.
  func run(_ target: NFCTarget) throws -> TagRecord {
    if let other = vehicle.steps.first(where: { $0.id != step.id && $0.tags.contains(target.uid) }) {
      throw CommandFailure(
        .configuration, "the tag \(target.uid) is listed as one of the \(other.id) step's; nothing was written",
        hint: "use another tag, or take it out of the vehicle file")
    }
    try register?.check(target.uid)
    defer { progress.clear() }
    var hasBegun = false
    let writer = TagWriter(reader, target, patience: patience) { progress in
      if case .written = progress { hasBegun = true }
      show(progress)
    }
    var record: TagRecord
    do {
      record = try dynamicIn.map { try setUp(writer, $0) } ?? write(writer)
    } catch let error as NFCError where hasBegun {
      let state = dynamicIn == nil ? "may be empty" : "may be set up in part"
      throw Unfinished(uid: target.uid, state: state, cause: error)
    }
    do {
      if !isRehearsal { try dynamicIn?.noteTaken(by: target.uid) }
      record.isRegistered = try register?.add(target.uid) ?? false
    } catch {
      record.failure = error
    }
    return record
  }

  private func write(_ writer: TagWriter) throws -> TagRecord {
    if locks { try writer.checkLockable() }
    let report: TagWriter.Report
    var former: StepName?
    do throws(NFCError) {
      report = try writer.write(replacingAll: replacesAll, isRehearsal: isRehearsal) { old in
        former = old?.records.lazy.compactMap { try? StepName(record: $0) }
          .first { (try? $0.step(in: vehicle))?.id != step.id }
        return message(replacing: old)
      }
    } catch {
      // What makes it too long are the other records.
      guard case .content(.tooSmall(let needed, let available)) = error,
        message(replacing: nil).bytes.count <= available
      else { throw error }
      throw NFCError.content(.occupied(needed: needed, available: available))
    }
    if locks {
      do throws(NFCError) { try writer.lock() } catch {
        throw Unfinished(uid: writer.target.uid, state: "is written, but may not be read-only", cause: error)
      }
    }
    return TagRecord(
      uid: writer.target.uid, step: step.id, chip: report.chip, content: label.text, former: former,
      changes: report.changes, unit: report.unit, isRehearsal: isRehearsal, isLocked: locks)
  }

  private func setUp(_ writer: TagWriter, _ folder: VehicleFolder) throws -> TagRecord {
    let uid = writer.target.uid
    let template = DynamicTag.template(vehicle: vehicle.uuid, step: step.id)
    var areTaken = false
    func setUp(isRehearsal: Bool) throws -> TagRecord {
      let secrets = try folder.dynamicTagSecrets(for: uid, on: step.id, isRehearsal: isRehearsal)
      areTaken = secrets.areTaken
      let setup = DynamicTagSetup(
        uri: template.uri, encryptedOffset: template.encryptedOffset, macOffset: template.macOffset,
        masterKey: secrets.master, metaReadKey: secrets.verifying.metaRead, fileReadKey: secrets.verifying.fileRead)
      let changes = try writer.setUp(setup, isRehearsal: isRehearsal) { uri in
        guard let tag = try? DynamicTag(parsing: uri), tag.vehicle == vehicle.uuid, tag.step == step.id else {
          return false
        }
        return tag.reading(with: secrets.verifying)?.uid == uid
      }
      return TagRecord(
        uid: uid, step: step.id, chip: "NTAG 424 DNA", content: template.uri, changes: changes, unit: .parts,
        isRehearsal: self.isRehearsal, settings: setup.settings)
    }
    // No keys are kept for a tag that cannot have them.
    let planned = try setUp(isRehearsal: true)
    guard !areTaken || planned.changes == 0 else {
      throw CommandFailure(
        .badData, "a tag \(uid) was set up before, and this one has the factory's keys: it may be a copy",
        hint: "to give it keys of its own, remove operator/tags/\(uid).key and its entry in keys/tags.json")
    }
    return isRehearsal || planned.changes == 0 ? planned : try setUp(isRehearsal: false)
  }

  private var label: StepLabel { StepLabel(vehicle: vehicle.uuid, step: step.id) }

  /// The label, and behind it what else the tag held that is not a step's name.
  private func message(replacing old: NDEFMessage?) -> NDEFMessage {
    let ours = NDEFText(label.text).record
    guard let old, !replacesAll else { return NDEFMessage([ours]) }
    return NDEFMessage([ours] + old.records.filter { $0.typeName != .empty && !Self.isLabel($0) })
  }

  private static func isLabel(_ record: NDEFRecord) -> Bool {
    if let text = try? NDEFText(record)?.text { return (try? StepLabel(parsing: text)) != nil }
    if let uri = try? NDEFURI(record)?.uri { return DynamicTag.isMeant(by: uri) }
    return false
  }

  private func show(_ progress: TagWriter.Progress) {
    switch progress {
    case .written(let count, let all): self.progress.show("writing: \(count) of \(all); hold it still")
    case .waiting(let left):
      self.progress.show("the tag is gone: hold it to the reader again, \(Int(left.inSeconds)) s left")
    }
  }
}
