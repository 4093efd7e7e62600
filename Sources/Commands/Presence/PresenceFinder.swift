import Encoding
import Bluetooth
import Configuration
import NFC
import CodeReading
import Ranging
import Domain
import SystemIO
import Terminal

/// Finds out at which step the rider is, by the way that was chosen or by all there are.
struct PresenceFinder {
  let vehicle: Vehicle
  let method: MethodChoice
  let settings: Settings
  /// A picture or a camera, where there may be a code.
  let codes: String?
  let saving: SaveOptions?
  let interruption: Interruption
  let console: Console

  /// Tries one way after the other, until one locates the rider.
  ///
  /// - Returns: what the last one that was tried found out.
  /// - Throws: also where a tag or a code was read and is not one of this vehicle's.
  func find() throws -> any PresenceReport {
    let ways = ways
    for way in ways.dropLast() {
      do {
        let report = try find(by: way)
        // Other ways find a step, or throw.
        if report.presence != nil { return report }
        console.note("not located by radio: \(report.summary)")
      } catch let error as RadioError where error != .interrupted {
        console.note("not located by radio: \(printable("\(error)"))")
      } catch let error as CodeReaderError where error != .interrupted {
        console.note("not located by code: \(printable("\(error)"))")
      } catch let failure as CommandFailure where failure.exitStatus == .notLocated {
        console.note(printable(failure.message))
      }
    }
    return try find(by: ways.last!)
  }

  private var ways: [ProofMethod] {
    switch method {
    case .beacon: [.beacon]
    case .nfc: [.nfc]
    case .qr: [.qr]
    // What else is at hand is what somebody named. To look takes less of the rider than to hold something to a tag.
    case .auto: [.beacon] + (codes != nil ? [.qr] : []) + (settings.nfc.value != nil ? [.nfc] : [])
    }
  }

  private func find(by way: ProofMethod) throws -> any PresenceReport {
    switch way {
    case .beacon: try listen()
    case .nfc: try readTag()
    case .qr: try readCode()
    }
  }
}

extension PresenceFinder {
  /// How many seconds late a decision of a live radio may come.
  private static let mostDelay = 1.0

  /// Listens until the rider is located, or the time is up.
  ///
  /// - Returns: the first decision that is enough to open a step, or else the last one.
  private func listen() throws -> any PresenceReport {
    let spec = try settings.radioSpec()
    let opened = try spec.open(interruption: interruption, tell: console.note)
    let radio = try saving?.recorded(opened) ?? opened
    defer { radio.close() }
    var last: LocationReport?
    try Locating(vehicle: vehicle, radio: radio).run(limit: settings.timeout.value) { location, delay in
      // What is decided late, by a program that was stopped meanwhile, is where the rider was.
      let isLate = !spec.isCapture && delay > Self.mostDelay
      let location = isLate ? Location(of: vehicle.steps, at: location.time) : location
      last = LocationReport(vehicle: vehicle, location: location, radio: spec)
      return !location.isLocated
    }
    // The first decision falls on the radio's first moment, so there is one even in an empty capture.
    return last!
  }

  private func readTag() throws -> any PresenceReport {
    let started = ContinuousClock.now
    let reader = try settings.openReader(interruption)
    defer { reader.close() }
    let progress = console.progress
    defer { progress.clear() }
    let sighting = try TagSighting.find(vehicle, reader, limit: settings.timeout.value) { left in
      progress.show("hold the reader to the tag on the step, \(Int(left.rounded(.up))) s left")
    }
    return ReadReport(
      vehicle: vehicle, step: sighting.step, proof: sighting.proof, time: sighting.time,
      elapsed: started.duration(to: sighting.time).inSeconds)
  }

  private func readCode() throws -> any PresenceReport {
    guard let codes else {
      throw CommandFailure(.usage, "--by qr takes --qr, which says where to look: a picture, - or a camera")
    }
    let started = ContinuousClock.now
    let progress = console.progress
    defer { progress.clear() }
    let sighting = try CodeSighting.find(
      vehicle, in: codes, patience: settings.patience, interruption: interruption
    ) { left in
      progress.show("show the code on the step to the camera, \(Int(left.inSeconds.rounded(.up))) s left")
    }
    return ReadReport(
      vehicle: vehicle, step: sighting.step, proof: sighting.proof, time: sighting.time,
      elapsed: started.duration(to: sighting.time).inSeconds)
  }
}
