import NFCMessages
import NFCReader
import Provisioning
import StepDomain
import StrictJSON
import SystemIO
import Terminal

/// One tag after the other, each once. What becomes of each is a line of the table at once.
struct TagBatch {
  let job: TagJob
  /// Nil for as many as come.
  let count: Int?
  /// How long to wait for each; nil for ever.
  let limit: Duration?
  let console: Console
  let interruption: Interruption

  /// Ends at the count, at a signal between two tags, or with an error of the reader. What is wrong with one tag only
  /// leaves the others alone.
  func run() throws {
    if !console.isJSON { try console.result("uid,step,outcome,chip,changes,locked,registered,reason") }
    var done: Set<TagUID> = []
    var failed = 0
    var needsRestart = false
    while done.count < count ?? .max {
      guard let target = try next(after: done) else { break }
      do {
        let record = try job.run(target)
        needsRestart = needsRestart || record.needsRestart
        done.insert(target.uid)
        try console.isJSON ? console.result(record.json) : console.result(record.row)
        if let failure = record.failure { throw failure }
        console.note("\(done.count)\(count.map { " of \($0)" } ?? "") done; take it away")
        if done.count == count { break }
      } catch {
        guard let reason = Self.reason(error) else { throw error }
        failed += 1
        try report(target.uid, reason)
        console.note("\(target.uid): \(reason); take it away")
      }
      do throws(NFCError) {
        try job.reader.waitForRemoval(of: target.uid, until: deadline)
      } catch {
        guard error == .interrupted else { throw error }
        break
      }
    }
    console.note("\(done.count) done, \(failed) failed\(needsRestart ? "; stepd has to be restarted" : "")")
    if failed > 0 { throw Ended(.badData) }
  }

  private var deadline: ContinuousClock.Instant? { limit.map { .now + $0 } }

  /// The next tag that was not done; nil when a signal came first.
  private func next(after done: Set<TagUID>) throws -> NFCTarget? {
    let deadline = deadline
    defer { job.progress.clear() }
    do throws(NFCError) {
      while true {
        let target = try job.reader.waitForTag(until: deadline) { left in
          job.progress.show("hold the next tag to the reader\(left.map { ", \(Int($0.inSeconds)) s left" } ?? "")")
        }
        guard done.contains(target.uid) else { return target }
        job.progress.show("\(target.uid) is done already")
        try job.reader.waitForRemoval(of: target.uid, until: deadline)
      }
    } catch {
      guard error == .interrupted else { throw error }
      return nil
    }
  }

  /// What is wrong with the tag; nil where it is something else that would be wrong with all others too.
  private static func reason(_ error: any Error) -> String? {
    switch error {
    case let error as NFCError where error.isOfTheTag: "\(error)"
    // It is the end of the pile, too, and what has become of this one has to be told.
    case NFCError.interrupted: "interrupted: the tag may be empty"
    case ProvisioningError.tagOfAnotherStep: "\(error)"
    // A job has no other reason of its own than which tag it was given.
    case let failure as CommandFailure: failure.message
    default: nil
    }
  }

  private func report(_ uid: TagUID, _ reason: String) throws {
    if console.isJSON {
      try console.result([
        "uid": .string(uid.description), "step": .string(job.step.id.description), "outcome": "failed",
        "reason": .string(reason),
      ])
    } else {
      // RFC 4180: in quotes, and quotes in it twice.
      let quoted = reason.split(separator: "\"", omittingEmptySubsequences: false).joined(separator: "\"\"")
      try console.result("\(uid),\(job.step.id),failed,,,,,\"\(quoted)\"")
    }
  }
}

extension TagRecord {
  /// A row of the table (RFC 4180): nothing in it takes quotes.
  fileprivate var row: String {
    "\(uid),\(step),\(outcome.rawValue),\(chip ?? ""),\(changes),\(isLocked),\(isRegistered),"
  }
}
