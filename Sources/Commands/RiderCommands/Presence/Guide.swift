import Bluetooth
import CommandParts
import Domain
import Encoding
import Ranging
import Rider
import SystemIO
import Terminal

/// Guides the rider during the searches: says which step is near, how far away it is, what to do, and how long the
/// search lasts. On a terminal this is one line that changes. Elsewhere, if lines are wanted, it prints a new line
/// whenever the advice changes.
final class Guide {
  private let vehicle: Vehicle
  private let console: Console
  private let hasLines: Bool
  /// How long the radio listens, seconds; nil if nobody waits for it, as with a recording that is read at once.
  private let limit: Double?
  /// What the rider should do, for each method that searches.
  private var parts: [ProofMethod: String] = [:]
  private var left: [ProofMethod: Double] = [:]
  private var said: String?

  /// - Parameters:
  ///   - limit: how long the radio listens, seconds; nil if nobody waits for it.
  ///   - hasLines: whether to print lines if there is no terminal.
  init(_ vehicle: Vehicle, limit: Double?, _ console: Console, hasLines: Bool) {
    self.vehicle = vehicle
    self.console = console
    self.hasLines = hasLines
    self.limit = limit
  }

  func show(_ method: ProofMethod, _ event: SearchEvent, side: Side? = nil) {
    switch event {
    case .note(let note):
      clear()
      console.note(note)
    case .decided(let location, let sighting):
      guard let limit else { return }
      left[method] = BeaconSearch.end(of: limit, location) - location.time
      // The caller shows what follows from a sighting.
      if sighting == nil { show(method, LocationReport(vehicle: vehicle, location: location).guidance(to: side)) }
    case .waiting(let left):
      self.left[method] = left.inSeconds
      show(
        method,
        .init(method == .nfc ? "hold the reader to the tag on the step" : "show the code on the step to the camera"))
    case .ended(let result):
      (parts[method], left[method]) = (nil, nil)
      clear()
      console.note(sentence(on: method, result))
    }
  }

  /// The sentence for a search that ended without a result.
  func sentence(on method: ProofMethod, _ result: Result<Finding, any Error>) -> String {
    let text = "by \(method.device): \(printable(reason(result)))"
    // The rider is at a step that they did not ask for.
    if case .success(.undecided(let location, _)) = result, location.isLocated { return text }
    return "not located \(text)"
  }

  /// The vehicle has not said yet which proofs it accepts.
  func show(asking sighting: Sighting) {
    // The remaining listening time of the radio says nothing about the answer.
    left[sighting.method] = nil
    guard limit != nil || sighting.method != .beacon || console.progress.isShown else { return }
    show(sighting.method, .init(sentence(asking: sighting)))
  }

  func sentence(asking sighting: Sighting) -> String {
    "at the \(sighting.step.id) step: waiting for the answer of \(printable(vehicle.name))"
  }

  /// The sighting is not enough for the vehicle.
  func show(_ shortfall: Shortfall, of sighting: Sighting) {
    guard limit != nil || sighting.method != .beacon else { return }
    show(sighting.method, .init(shortfall.sentence(of: sighting), key: "\(shortfall)"))
  }

  /// Clears the line before something else is printed.
  func clear() { console.progress.clear() }

  /// What to do. Two guidances with the same key are shown once.
  struct Guidance {
    let text: String
    let key: String

    init(_ text: String, key: String? = nil) {
      self.text = text
      self.key = key ?? text
    }
  }

  private func show(_ method: ProofMethod, _ guidance: Guidance) {
    parts[method] = guidance.text
    if console.progress.isShown {
      let texts = ProofMethod.allCases.compactMap { parts[$0] }.joined(separator: "; or ")
      let seconds = left.values.max().map { ", \(max(0, Int($0.rounded(.up)))) s left" } ?? ""
      console.progress.show(texts + seconds)
    } else if hasLines, said != guidance.key {
      said = guidance.key
      console.note("waiting", guidance.text)
    }
  }

  private func reason(_ result: Result<Finding, any Error>) -> String {
    do {
      return FindingReport(vehicle: vehicle, finding: try result.get(), began: .now).summary
    } catch let error as SightingError {
      return error.reason
    } catch {
      return "\(error)"
    }
  }
}

extension LocationReport {
  /// `left 2.1 m: come closer on the left side`
  ///
  /// - Parameter side: the side that the rider asked for; nil for either.
  fileprivate func guidance(to side: Side?) -> Guide.Guidance {
    let reading = location.facing.flatMap(location.reading)
    let distance = reading?.distance.map { " \(tenths($0.metres)) m" } ?? ""
    let place = reading.map { "\($0.step.id)\(distance): " } ?? ""
    let sentence = Advice(self, to: side).sentence(naming: printable(vehicle.name))
    return .init(place + sentence, key: sentence)
  }
}

extension Shortfall {
  /// What is missing, and what to do: `left: 2.1 m; the vehicle asks for less than 0.5 m`
  func sentence(of sighting: Sighting) -> String {
    switch self {
    case .otherSide: return "you are at the \(sighting.step.id) step, not at the one that you asked for"
    case .zone(let zone):
      let distance = sighting.reading?.distance.map { "\(tenths($0.metres)) m" } ?? "located"
      let asked = zone.end.map { "less than \(tenths($0)) m" } ?? zone.rawValue
      return "\(sighting.step.id): \(distance); the vehicle asks for \(asked)"
    case .method(let accepted):
      let words = ProofMethod.allCases.filter(accepted.contains).map(\.noun)
      // The vehicle names only methods of a later version.
      if words.isEmpty { return "the vehicle accepts no proof that this program can give" }
      return "the vehicle does not accept \(sighting.method.noun); it accepts \(words.joined(separator: " or "))"
    case .notHeard(let place?):
      return "the vehicle hears you at the \(place) step"
    case .notHeard(nil):
      return "\(sighting.step.id): the vehicle does not hear you there yet"
    case .copy:
      return "the vehicle does not accept \(sighting.method.noun) that can be copied"
    }
  }
}

extension Sighting {
  /// What the radio heard of the step's beacon; nil for a tag or a code.
  var reading: Location.Reading? {
    if case .beacons(let location) = evidence { location.reading(of: step) } else { nil }
  }
}

extension ProofMethod {
  fileprivate var device: String {
    switch self {
    case .beacon: "radio"
    case .nfc: "tag"
    case .qr: "code"
    case .heard: "vehicle"
    }
  }

  fileprivate var noun: String {
    switch self {
    case .beacon: "a beacon"
    case .nfc: "a tag"
    case .qr: "a code"
    case .heard: "being heard"
    }
  }
}
