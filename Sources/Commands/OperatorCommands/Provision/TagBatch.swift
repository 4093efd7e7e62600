import Domain
import Encoding
import NFC
import Operator
import SystemIO
import Tags
import Terminal

/// `provision tag --batch`: writes one tag after the other, each once. Prints each tag's table row immediately.
struct TagBatch {
  let job: TagJob
  /// How many tags to write; nil for no limit.
  let count: Int?
  /// How long to wait for each tag; nil for no limit.
  let limit: Duration?
  let console: Console

  /// Ends when the count is reached, when no tag came in time, at a signal, or at an error that does not belong to one
  /// tag. An error of one tag does not stop the batch.
  func run() throws {
    if !console.isJSON { try console.result("uid,step,outcome,chip,changes,locked,registered,reason") }
    var done: Set<TagUID> = []
    var failed = 0
    var needsReload = false
    defer {
      console.note("\(done.count) done, \(failed) failed\(needsReload ? "; reload stepd to apply this" : "")")
    }
    do {
      while done.count < count ?? .max {
        let target = try next(after: done)
        switch Result(catching: { try job.run(target) }) {
        case .success(let report):
          done.insert(target.uid)
          needsReload = needsReload || report.needsReload
          try console.isJSON ? console.result(report.json) : console.result(report.row)
          for text in [report.formerName, report.lossText].compactMap(\.self) {
            console.note("\(target.uid): \(text)")
          }
          if let failure = report.failure { throw failure }
          console.note("\(done.count)\(count.map { " of \($0)" } ?? "") done; take it away")
        case .failure(let error):
          guard let reason = Self.reason(error) else { throw error }
          failed += 1
          try report(target.uid, reason)
          // The tag's row states what the tag may hold now.
          guard Self.isOfTheTag(error) else { throw (error as? TagJob.Unfinished)?.cause ?? error }
          console.note("\(target.uid): \(reason); take it away")
        }
        if done.count == count { break }
        try job.field.waitForRemoval(of: target.uid, until: deadline)
      }
    } catch let error as any Failure where error.isInterruption {
      // A pile of tags ends with this timeout.
    } catch NFCError.noTag where failed > 0 {
      console.note("\(NFCError.noTag)")
    }
    if failed > 0 { throw Ended(.badData) }
  }

  private var deadline: Instant? { limit.map { .now + $0 } }

  /// Waits for a tag that this batch has not written yet.
  private func next(after done: Set<TagUID>) throws -> NFCTarget {
    let deadline = deadline
    defer { job.progress.clear() }
    while true {
      let target = try job.field.waitForTag(until: deadline) { left in
        job.progress.show("hold the next tag to the reader\(left.map { ", \(Int($0.inSeconds)) s left" } ?? "")")
      }
      guard done.contains(target.uid) else { return target }
      job.progress.show("\(target.uid) is done already")
      try job.field.waitForRemoval(of: target.uid, until: deadline)
    }
  }

  /// Why a tag failed; nil if nothing was written and every other tag would fail too.
  private static func reason(_ error: any Error) -> String? {
    switch error {
    case let error as TagJob.Unfinished: "\(error.cause); the tag \(error.state)"
    case let failure as CommandFailure: failure.message
    case _ where isOfTheTag(error): "\(error)"
    default: nil
    }
  }

  /// Whether another tag may succeed.
  private static func isOfTheTag(_ error: any Error) -> Bool {
    switch error {
    case let error as TagJob.Unfinished: NFCError.isOfTheTag(error.cause)
    case ProvisioningError.tagOfAnotherStep: true
    // A job refuses only particular tags.
    case is CommandFailure: true
    default: NFCError.isOfTheTag(error)
    }
  }

  private func report(_ uid: TagUID, _ reason: String) throws {
    if console.isJSON {
      try console.result([
        "uid": .string(uid.description), "step": .string(job.step.id.description), "outcome": "failed",
        "reason": .string(reason),
      ])
    } else {
      // RFC 4180: quote the text, and double its own quotes.
      let quoted = reason.split(separator: "\"", omittingEmptySubsequences: false).joined(separator: "\"\"")
      try console.result("\(uid),\(job.step.id),failed,,,,,\"\(quoted)\"")
    }
  }
}

extension TagReport {
  /// A row of the table (RFC 4180). Nothing in it needs quotes.
  fileprivate var row: String {
    "\(uid),\(step),\(outcome.rawValue),\(chip ?? ""),\(changes),\(isLocked),\(isRegistered),"
  }
}
