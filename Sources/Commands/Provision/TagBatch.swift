import Domain
import Encoding
import NFC
import Provisioning
import SystemIO
import Tags
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

  /// Ends at the count, when no tag came in time, at a signal, or with an error that is not the tag's. What is wrong
  /// with one tag only leaves the others alone.
  func run() throws {
    if !console.isJSON { try console.result("uid,step,outcome,chip,changes,locked,registered,reason") }
    var done: Set<TagUID> = []
    var failed = 0
    var needsRestart = false
    defer {
      console.note("\(done.count) done, \(failed) failed\(needsRestart ? "; stepd has to be restarted" : "")")
    }
    do {
      while done.count < count ?? .max {
        let target = try next(after: done)
        switch Result(catching: { try job.run(target) }) {
        case .success(let record):
          done.insert(target.uid)
          needsRestart = needsRestart || record.needsRestart
          try console.isJSON ? console.result(record.json) : console.result(record.row)
          if let former = record.formerName { console.note("\(target.uid): \(former)") }
          if let failure = record.failure { throw failure }
          console.note("\(done.count)\(count.map { " of \($0)" } ?? "") done; take it away")
        case .failure(let error):
          guard let reason = Self.reason(error) else { throw error }
          failed += 1
          try report(target.uid, reason)
          // What the tag may be left as is in its row.
          guard Self.isOfTheTag(error) else { throw (error as? TagJob.Unfinished)?.cause ?? error }
          console.note("\(target.uid): \(reason); take it away")
        }
        if done.count == count { break }
        try job.reader.waitForRemoval(of: target.uid, until: deadline)
      }
    } catch NFCError.interrupted {
      // It is how a pile ends.
    } catch NFCError.noTag where failed > 0 {
      console.note("\(NFCError.noTag)")
    }
    if failed > 0 { throw Ended(.badData) }
  }

  private var deadline: ContinuousClock.Instant? { limit.map { .now + $0 } }

  /// The next tag that was not done.
  private func next(after done: Set<TagUID>) throws(NFCError) -> NFCTarget {
    let deadline = deadline
    defer { job.progress.clear() }
    while true {
      let target = try job.reader.waitForTag(until: deadline) { left in
        job.progress.show("hold the next tag to the reader\(left.map { ", \(Int($0.inSeconds)) s left" } ?? "")")
      }
      guard done.contains(target.uid) else { return target }
      job.progress.show("\(target.uid) is done already")
      try job.reader.waitForRemoval(of: target.uid, until: deadline)
    }
  }

  /// Why a tag failed; nil where nothing was written to it, and all others would fail too.
  private static func reason(_ error: any Error) -> String? {
    switch error {
    case let error as TagJob.Unfinished: "\(error.cause); the tag \(error.state)"
    case let failure as CommandFailure: failure.message
    case _ where isOfTheTag(error): "\(error)"
    default: nil
    }
  }

  /// Whether another tag may be well.
  private static func isOfTheTag(_ error: any Error) -> Bool {
    switch error {
    case let error as TagJob.Unfinished: error.cause.isOfTheTag
    case let error as NFCError: error.isOfTheTag
    case ProvisioningError.tagOfAnotherStep: true
    // A job has no other reason of its own than which tag it was given.
    case is CommandFailure: true
    default: false
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
