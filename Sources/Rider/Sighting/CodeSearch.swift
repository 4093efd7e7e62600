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

  package let method = ProofMethod.qr

  package init(_ vehicle: Vehicle, source: String, patience: Duration) {
    self.vehicle = vehicle
    self.source = source
    self.patience = patience
  }

  package func find(until interruption: Interruption, tell: (SearchEvent) -> Void) throws -> Finding {
    let source = try CodeSource.open(source)
    var reader = try CodeReader(source, patience: patience, interruption: interruption)
    var sighting: Sighting?
    var refusal: SightingError?
    do {
      while let code = try reader.next(progress: { tell(.waiting(left: $0)) }) {
        do throws(SightingError) {
          let found = try Sighting(code: code, of: vehicle, found: .now)
          // A picture is looked at to its end, because one that shows two steps names none.
          if source.isCamera { return .sighted(found) }
          if let sighting, sighting.step != found.step {
            refusal = .twoSteps(source.name, sighting.step.id, found.step.id)
            break
          }
          sighting = found
        } catch {
          refusal = error
        }
      }
    } catch CodeReaderError.timedOut {
      throw refusal ?? .noCodeSeen(patience.inSeconds)
    }
    if case .twoSteps? = refusal { throw refusal! }
    guard let sighting else { throw refusal ?? .noCode(source.name) }
    return .sighted(sighting)
  }
}

extension Sighting {
  /// - Throws: for a code that is not on a step of this vehicle.
  package init(code bytes: [UInt8], of vehicle: Vehicle, found: ContinuousClock.Instant) throws(SightingError) {
    do throws(StepName.Problem) {
      let name = try StepName(code: bytes)
      self.init(code: name.content, of: try name.step(in: vehicle), found: found)
    } catch {
      throw .code(error)
    }
  }
}
