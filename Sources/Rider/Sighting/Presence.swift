package import Domain
import StepProtocol

/// The evidence of a rider's presence so far, and whether a vehicle accepts it.
///
/// A value without I/O or a clock. `verdict` says whether a sighting is enough, alone or together with another one.
package struct Presence: Sendable {
  /// The result of the evidence so far.
  package enum Verdict: Sendable {
    /// The vehicle accepts this sighting.
    case suffices(Sighting)
    /// The vehicle has not said yet what it accepts at this step.
    case asks(Sighting)
    /// This sighting is not enough.
    case lacks(Sighting, Shortfall)
    /// Nothing was found yet.
    case nothing
  }

  /// The side that the rider asked for; nil for the step that the rider is at.
  private let side: Side?
  private var policies: [StepID: PresencePolicy] = [:]
  /// Where the vehicle says that it hears this device. It is a sighting by itself, and a part of other proofs.
  private var hearing: Sighting?
  /// In the order in which they were found. For a live radio only the last decision counts. For a recording that
  /// is read at once every decision counts: the vehicle's answer may come after its end.
  private var sightings: [Sighting] = []

  package init(side: Side?) { self.side = side }

  /// Whether the vehicle has told its policy for any step.
  package var isAnswered: Bool { policies.count > 0 }

  /// The vehicle has told its policy for a step.
  package mutating func learned(_ policy: PresencePolicy, of step: StepID) { policies[step] = policy }

  /// A tag or a code was read.
  package mutating func found(_ sighting: Sighting) { sightings.append(sighting) }

  /// A radio has decided.
  ///
  /// - Parameters:
  ///   - sighting: nil if the rider is not located.
  ///   - isReplay: whether the radio is a recording that is read at once.
  package mutating func decided(_ sighting: Sighting?, isReplay: Bool) {
    if !isReplay { sightings.removeAll { $0.method == .beacon } }
    if let sighting { sightings.append(sighting) }
  }

  /// The vehicle hears this device at a step, or at none: nil.
  package mutating func heard(_ sighting: Sighting?) { hearing = sighting }

  /// Whether the sighting would be enough if the vehicle heard this device.
  package func awaitsHearing(_ shortfall: Shortfall, at step: StepID) -> Bool {
    if case .notHeard = shortfall { return true }
    return policies[step].map { $0.methods.contains(.heard) && !$0.needsHearing } ?? false
  }

  package var verdict: Verdict {
    var best = Verdict.nothing
    for sighting in sightings + alone {
      switch verdict(on: sighting) {
      case .suffices: return .suffices(sighting)
      case .asks: if case .asks = best { continue } else { best = .asks(sighting) }
      case .lacks(_, let shortfall): if case .asks = best { continue } else { best = .lacks(sighting, shortfall) }
      case .nothing: continue
      }
    }
    return best
  }

  /// Where the vehicle hears this device, unless that counts only together with another proof.
  private var alone: [Sighting] {
    guard let hearing, !policies.values.contains(where: \.needsHearing) else { return [] }
    return [hearing]
  }

  private func verdict(on sighting: Sighting) -> Verdict {
    if let side, side != sighting.step.side { return .lacks(sighting, .otherSide) }
    guard let policy = policies[sighting.step.id] else { return .asks(sighting) }
    if let shortfall = policy.shortfall(of: sighting.proof) { return .lacks(sighting, shortfall) }
    guard policy.needsHearing, hearing?.step != sighting.step else { return .suffices(sighting) }
    return .lacks(sighting, .notHeard(at: hearing?.step.id))
  }
}

/// Why a sighting is not enough.
package enum Shortfall: Hashable, Sendable {
  /// The rider is at another step than the requested one.
  case otherSide
  /// The vehicle does not accept this way to prove presence.
  case method(accepted: Set<ProofMethod>)
  /// The vehicle accepts no identifier that can be copied, and this one can.
  case copy
  /// The rider is located at the step, but not in the zone that the vehicle requires.
  case zone(Zone)
  /// The vehicle does not hear this device at the step, but at another step or at none.
  case notHeard(at: StepID?)
}

extension PresencePolicy {
  /// Why the vehicle would refuse a proof, as far as the rider's side can know; nil if it would not. Only the vehicle
  /// knows whether a beacon can be copied.
  package func shortfall(of proof: Proof) -> Shortfall? {
    guard methods.contains(proof.method), proof.method != .heard || !needsHearing else {
      return .method(accepted: needsHearing ? methods.subtracting([.heard]) : methods)
    }
    switch proof {
    case .beacon(let measured, let isLocated, _):
      return isNearEnough(measured, isLocated: isLocated) ? nil : .zone(zone)
    case .tag(_, let content): return acceptsStatic || DynamicTag.isMeant(by: content) ? nil : .copy
    case .code: return acceptsStatic ? nil : .copy
    case .heard: return nil
    }
  }
}
