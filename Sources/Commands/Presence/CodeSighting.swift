import Encoding
import CodeReading
import Domain
import StepProtocol
import SystemIO
import Terminal

/// A step's code that was read: the step, and the proof of having seen it.
struct CodeSighting {
  let step: Step
  /// What was read, unchanged, as the proof gives it.
  let content: String
  /// When it was read.
  let time: ContinuousClock.Instant

  var proof: Proof { .code(content: content) }

  /// Looks for the code of a step in a picture, or through a camera.
  ///
  /// - Parameters:
  ///   - source: a path, or `-` for standard input.
  ///   - patience: how long to look through a camera.
  ///   - progress: is told now and then how much of that is left.
  /// - Throws: `CodeReaderError` for what is wrong with the source, `CommandFailure` for everything about the codes.
  static func find(
    _ vehicle: Vehicle, in source: String, patience: Duration, interruption: Interruption,
    progress: (Duration) -> Void = { _ in }
  ) throws -> CodeSighting {
    let source = try CodeSource.open(source)
    var reader = try CodeReader(source, patience: patience, interruption: interruption)
    var sighting: CodeSighting?
    var refusal: CommandFailure?
    do {
      while let code = try reader.next(progress: progress) {
        let found: CodeSighting
        do {
          found = try CodeSighting(code, of: vehicle, at: .now)
        } catch let failure as CommandFailure {
          refusal = failure
          continue
        }
        // A picture is looked at to its end, because one that shows two steps names none.
        if source.isCamera { return found }
        if let sighting, sighting.step != found.step {
          throw CommandFailure.notLocated(
            "\(source.name) shows the codes of the \(sighting.step.id) and the \(found.step.id) step")
        }
        sighting = found
      }
    } catch CodeReaderError.timedOut {
      throw refusal ?? CommandFailure.notLocated("the camera saw no code in \(tenths(patience.inSeconds)) s")
    }
    guard let sighting else { throw refusal ?? CommandFailure.notLocated("there is no code in \(source.name)") }
    return sighting
  }

  /// - Throws: a `CommandFailure` for a code that is not on a step of this vehicle.
  private init(_ code: [UInt8], of vehicle: Vehicle, at time: ContinuousClock.Instant) throws {
    guard let text = String(validating: code, as: UTF8.self) else {
      throw CommandFailure.notLocated("the code holds something else than the name of a step")
    }
    let label: StepLabel
    do throws(StepLabel.ParsingError) {
      label = try StepLabel(parsing: text)
    } catch {
      switch error {
      case .notLabel: throw CommandFailure.notLocated("the code holds something else than the name of a step")
      case .malformed: throw CommandFailure.notLocated("the code holds \(error)")
      }
    }
    guard label.vehicle == vehicle.uuid else {
      throw CommandFailure.notLocated(
        "the code is another vehicle's (\(label.vehicle)), not one of \(printable(vehicle.name))")
    }
    guard let step = label.step(in: vehicle) else {
      throw CommandFailure.notLocated("the code names a step that \(printable(vehicle.name)) does not have")
    }
    self.step = step
    content = text
    self.time = time
  }
}
