import Access
import Domain
import FileFormats
import NDEF
import NFC
import Operator
import StepProtocol
import SystemIO
import Tags
import Terminal

/// Writes one tag for `provision tag`.
struct TagJob {
  let field: any TagField
  let vehicle: Vehicle
  let step: Step
  let replacesAll: Bool
  let locks: Bool
  /// Whether this is a dry run that writes nothing.
  let isRehearsal: Bool
  /// The list to add the tag to; nil for none.
  let list: TagList?
  /// The vehicle's folder, which stores a dynamic tag's keys; nil for a plain tag.
  let dynamicIn: VehicleFolder?
  /// How long a tag may leave the field while it is written.
  let patience: Duration
  let progress: ProgressLine

  /// A job ended after it had started to write.
  struct Unfinished: Failure {
    let uid: TagUID
    /// What the tag may hold now: `may be empty`
    let state: String
    let cause: any Failure

    var description: String { cause.description }
    var exitStatus: ExitStatus { cause.exitStatus }
    var hint: String? { advice }
    var advice: String { "the tag \(uid) \(state); \(isBroken ? "use another tag" : "run the command again with it")" }

    /// Whether the tag rejects every write, however often it is repeated.
    private var isBroken: Bool {
      switch cause {
      case NFCError.refused, NFCError.ignored, NDEFError.refused: true
      default: false
      }
    }
  }

  /// Waits for a tag, and writes to it.
  ///
  /// - Parameter tell: receives the state in which a signal has left the tag.
  func run(until deadline: Instant, tell: (String) -> Void) throws -> TagReport {
    defer { progress.clear() }
    let target = try field.waitForTag(until: deadline) { left in
      if let left { progress.show("waiting for a tag, \(Int(left.inSeconds)) s left") }
    }
    do {
      return try run(target)
    } catch let error as Unfinished where error.cause.isInterruption {
      progress.clear()
      tell("interrupted: \(error.advice)")
      throw error.cause
    }
  }

  /// Writes to the selected tag.
  ///
  /// - Returns: a report, also when the tag was written but could not be listed. Then the report has a `failure`.
  /// - Throws: `Unfinished` when the tag's content is unknown.
  func run(_ target: NFCTarget) throws -> TagReport {
    if let other = vehicle.steps.first(where: { $0.id != step.id && $0.tags.contains(target.uid) }) {
      throw CommandFailure(
        .configuration, "the tag \(target.uid) is listed as one of the \(other.id) step's; nothing was written",
        hint: "use another tag, or remove this one from the vehicle file")
    }
    if list != nil, target.uid.isRandom {
      throw CommandFailure(
        .badData, "the tag gives a random UID, by which no vehicle can know it; nothing was written",
        hint: "use another tag; a step with a list of tags accepts no others")
    }
    try list?.check(target.uid)
    defer { progress.clear() }
    var hasBegun = false
    let writer = TagWriter(field, target, patience: patience) { progress in
      if case .written = progress { hasBegun = true }
      show(progress)
    }
    var report: TagReport
    do {
      report = try dynamicIn.map { try setUp(writer, $0) } ?? write(writer)
    } catch let error as Unfinished {
      throw error
    } catch let error as any Failure where hasBegun {
      let state = dynamicIn == nil ? "may be empty" : "may be set up in part"
      throw Unfinished(uid: target.uid, state: state, cause: error)
    }
    do {
      if !isRehearsal { try dynamicIn?.noteTaken(by: target.uid) }
      report.isRegistered = try list?.add(target.uid) ?? false
    } catch {
      report.failure = error
    }
    return report
  }

  private func write(_ writer: TagWriter) throws -> TagReport {
    if locks { try writer.checkLockable() }
    let written: TagWriter.Report
    var former: StepName?
    var losses: [TagWriter.Loss] = []
    do {
      written = try writer.write(replacingAll: replacesAll, isRehearsal: isRehearsal) { old in
        former = old?.records.lazy.compactMap { try? StepName(record: $0) }
          .first { (try? $0.step(in: vehicle))?.id != step.id }
        let others = replacesAll ? old?.records.filter(Self.isOther) ?? [] : []
        if !others.isEmpty { losses.append(.records(others.count)) }
        return message(replacing: old)
      }
    } catch NDEFError.tooSmall(let needed, let available) where message(replacing: nil).bytes.count <= available {
      // The label would fit without the tag's other records.
      throw NDEFError.occupied(needed: needed, available: available)
    }
    if locks {
      do {
        try writer.lock()
      } catch let error as any Failure {
        throw Unfinished(uid: writer.target.uid, state: "is written, but may not be read-only", cause: error)
      }
    }
    return TagReport(
      uid: writer.target.uid, step: step.id, chip: written.chip, content: label.text, former: former,
      changes: written.changes, unit: written.unit, losses: losses + written.losses, isRehearsal: isRehearsal,
      isLocked: locks)
  }

  private func setUp(_ writer: TagWriter, _ folder: VehicleFolder) throws -> TagReport {
    let uid = writer.target.uid
    let template = DynamicTag.template(vehicle: vehicle.uuid, step: step.id)
    var areTaken = false
    func setUp(isRehearsal: Bool) throws -> TagReport {
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
      return TagReport(
        uid: uid, step: step.id, chip: "NTAG 424 DNA", content: template.uri, changes: changes, unit: .parts,
        isRehearsal: self.isRehearsal, settings: setup.settings)
    }
    // A dry run first, so that no keys are stored for a tag that cannot take them.
    let planned = try setUp(isRehearsal: true)
    guard !areTaken || planned.changes == 0 else {
      throw CommandFailure(
        .badData, "a tag \(uid) was set up before, and this one has the factory's keys: it may be a copy",
        hint: "to give it keys of its own, remove operator/tags/\(uid).key and its entry in keys/tags.json")
    }
    return isRehearsal || planned.changes == 0 ? planned : try setUp(isRehearsal: false)
  }

  private var label: StepLabel { StepLabel(vehicle: vehicle.uuid, step: step.id) }

  /// The label, followed by the tag's other records, except names of steps.
  private func message(replacing old: NDEFMessage?) -> NDEFMessage {
    let ours = NDEFText(label.text).record
    guard let old, !replacesAll else { return NDEFMessage([ours]) }
    return NDEFMessage([ours] + old.records.filter(Self.isOther))
  }

  /// Whether a record is neither empty nor a step's name.
  private static func isOther(_ record: NDEFRecord) -> Bool { record.typeName != .empty && !isLabel(record) }

  private static func isLabel(_ record: NDEFRecord) -> Bool {
    if let text = try? NDEFText(record)?.text { return (try? StepLabel(parsing: text)) != nil }
    if let uri = try? NDEFURI(record)?.uri { return uri.utf8.starts(with: DynamicTag.scheme.utf8) }
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

/// The list of a step's tags in the vehicle file.
struct TagList {
  let path: String
  let step: StepID

  /// Checks that a tag can be added, before a write that may be permanent.
  ///
  /// - Throws: `ConfigurationError` with the reason.
  func check(_ tag: TagUID) throws { _ = try adding(tag, to: Files.read(path)) }

  /// Adds a tag that is not in the list yet.
  ///
  /// - Returns: whether the file has changed.
  func add(_ tag: TagUID) throws -> Bool {
    try Files.edit(path) { try adding(tag, to: $0) }
  }

  private func adding(_ tag: TagUID, to text: [UInt8]) throws(ConfigurationError) -> [UInt8] {
    try VehicleFile.adding(tag: tag, to: step, in: text, path: path)
  }
}
