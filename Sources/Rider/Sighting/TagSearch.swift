import Access
package import Domain
import NDEF
package import NFC
import StepProtocol
package import SystemIO
import Tags

/// Waits for a tag on a step, and reads it.
package struct TagSearch: StepSearch {
  let vehicle: Vehicle
  /// libnfc's connection string; nil for libnfc's own choice.
  let reader: String?
  /// Seconds.
  let limit: Double
  /// Gets what the reader and the tag say; nil if it is not wanted.
  let trace: Trace?

  package let method = ProofMethod.nfc

  package init(_ vehicle: Vehicle, reader: String?, limit: Double, trace: Trace? = nil) {
    self.vehicle = vehicle
    self.reader = reader
    self.limit = limit
    self.trace = trace
  }

  package func find(until interruption: Interruption, tell: @escaping (SearchEvent) -> Void) throws -> Finding {
    let reader = try NFCReader(reader, interruption: interruption)
    defer { reader.close() }
    let contents: TagContents
    do {
      let field: any TagField = trace.map { TracedField(reader, $0) } ?? reader
      contents = try field.readTag(until: .now + .milliseconds(Int64(limit * 1000))) { left in
        if let left { tell(.waiting(left: left)) }
      }
    } catch NFCError.noTag {
      throw SightingError.noTag(limit)
    } catch NFCError.noAnswer {
      throw SightingError.unreadableTag(NFCError.noAnswer.description)
    }
    return .sighted(try Sighting(contents, of: vehicle, found: .now))
  }
}

extension Sighting {
  /// - Throws: for a tag that does not belong to a step of this vehicle.
  package init(
    _ contents: TagContents, of vehicle: Vehicle, found: Instant
  ) throws(SightingError) {
    let uid = contents.target.uid
    let message: NDEFMessage
    do { message = try contents.message.get() } catch { throw .unreadableTag("\(error)") }
    let (name, step): (StepName, Step)
    do throws(StepName.Problem) {
      name = try StepName(tag: message)
      step = try name.step(in: vehicle)
    } catch {
      throw .tag(error)
    }
    // The vehicle would refuse the tag (PROTOCOL.md, section 6). A dynamic tag proves its own identity.
    guard step.tags.isEmpty || step.tags.contains(uid) || name.isDynamic else { throw .strangeTag(uid, step: step.id) }
    self.init(tag: uid, content: name.content, of: step, found: found)
  }
}
