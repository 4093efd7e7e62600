import Access
import CodeReading
package import Domain
import StepProtocol
package import SystemIO

/// Looks for the code of a step in a picture, or through a camera.
package struct CodeSearch: StepSearch {
  let vehicle: Vehicle
  /// The path of a picture or a camera, or `-` for standard input.
  let source: String
  /// How long to look through a camera.
  let patience: Duration
  /// Gets the codes that are seen; nil if they are not wanted.
  let trace: Trace?

  package let method = ProofMethod.qr

  package init(_ vehicle: Vehicle, source: String, patience: Duration, trace: Trace? = nil) {
    self.vehicle = vehicle
    self.source = source
    self.patience = patience
    self.trace = trace
  }

  package func find(until interruption: Interruption, tell: @escaping (SearchEvent) -> Void) throws -> Finding {
    let source = try CodeSource.open(source)
    var reader = try CodeReader(source, patience: patience, interruption: interruption)
    var sighting: Sighting?
    var refusal: SightingError?
    while let code = try next(&reader, refusal, tell) {
      if let trace {
        // A step's code is public. Any other code may contain a secret: access, or the password of a network.
        let name = try? StepName(code: code)
        trace("< \(source.name) code \(name?.content ?? "of \(code.count) bytes that names no step; not shown")")
      }
      switch Result(catching: { () throws(SightingError) in try Sighting(code: code, of: vehicle, found: .now) }) {
      case .failure(let error): refusal = error
      case .success(let found):
        // A picture is read to its end, because a picture with two steps' codes names neither step.
        if source.isCamera { return .sighted(found) }
        if let sighting, sighting.step != found.step {
          throw SightingError.twoSteps(source.name, sighting.step.id, found.step.id)
        }
        sighting = found
      }
    }
    guard let sighting else { throw refusal ?? .noCode(source.name) }
    return .sighted(sighting)
  }

  /// - Parameter refusal: what was wrong with the last seen code.
  private func next(
    _ reader: inout CodeReader, _ refusal: SightingError?, _ tell: (SearchEvent) -> Void
  ) throws -> [UInt8]? {
    do throws(CodeReaderError) {
      return try reader.next { tell(.waiting(left: $0)) }
    } catch {
      guard case .timedOut = error else { throw error }
      throw refusal ?? .noCodeSeen(patience.inSeconds)
    }
  }
}

extension Sighting {
  /// - Throws: for a code that does not belong to a step of this vehicle.
  package init(code bytes: [UInt8], of vehicle: Vehicle, found: Instant) throws(SightingError) {
    do throws(StepName.Problem) {
      let name = try StepName(code: bytes)
      self.init(code: name.content, of: try name.step(in: vehicle), found: found)
    } catch {
      throw .code(error)
    }
  }
}
