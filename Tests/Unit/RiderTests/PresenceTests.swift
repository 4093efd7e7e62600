import Domain
import Ranging
import Rider
import StepProtocol
import Testing

/// Which sighting becomes the command, and what is missing of the others.
@Suite("Presence and what a vehicle asks for") struct PresenceTests {
  private let left = World.vehicle.steps[0]
  private let right = World.vehicle.steps[1]

  private func policy(
    _ methods: Set<ProofMethod> = [.beacon, .nfc, .qr], zone: Zone = .near, acceptsStatic: Bool = true
  ) -> PresencePolicy {
    PresencePolicy(methods: methods, zone: zone, acceptsStatic: acceptsStatic)
  }

  /// What a rider hears at a level beside the left step, dBm, after three seconds.
  private func heard(_ rssi: Int8) -> Sighting? {
    var locator = Locator(steps: World.vehicle.steps)
    var location = locator.decide(at: 0)
    for tick in 1...30 {
      let time = Double(tick) / 10
      for (step, rssi) in [(left, rssi), (right, -90)] {
        let beacon = IBeacon(uuid: World.vehicle.uuid, major: step.major, minor: 1, measuredPower: -59)
        locator.hear(beacon, rssi: rssi, at: time)
      }
      if tick % 5 == 0 { location = locator.decide(at: time) }
    }
    return Sighting(location, made: World.epoch)
  }

  private func name(_ verdict: Presence.Verdict) -> String {
    switch verdict {
    case .suffices(let sighting): "\(sighting.step.id) \(sighting.method.rawValue)"
    case .asks(let sighting): "asks \(sighting.step.id)"
    case .lacks(let sighting, .method(let accepted)):
      "\(sighting.step.id) lacks \(accepted.map(\.rawValue).sorted())"
    case .lacks(let sighting, let shortfall): "\(sighting.step.id) lacks \(shortfall)"
    case .nothing: "nothing"
    }
  }

  @Test("a sighting waits for what the vehicle asks for, and does if it is that")
  func asks() throws {
    var presence = Presence(side: nil)
    #expect(name(presence.verdict) == "nothing")
    presence.decided(heard(-60), isReplay: false)
    #expect(name(presence.verdict) == "asks left")
    presence.learned(policy(), of: right.id)
    #expect(name(presence.verdict) == "asks left")
    presence.learned(policy(), of: left.id)
    #expect(name(presence.verdict) == "left beacon")
  }

  @Test("a zone that the vehicle asks for is waited for; a rider who goes away is no longer there")
  func zone() throws {
    var presence = Presence(side: nil)
    presence.learned(policy(zone: .immediate), of: left.id)
    presence.decided(heard(-60), isReplay: false)
    #expect(name(presence.verdict) == "left lacks \(Shortfall.zone(.immediate))")
    presence.decided(nil, isReplay: false)
    #expect(name(presence.verdict) == "nothing")
    presence.decided(heard(-45), isReplay: false)
    #expect(name(presence.verdict) == "left beacon")
  }

  @Test("of a recording each decision counts, the first that does wins, whenever the answer comes")
  func replay() throws {
    for isEarly in [true, false] {
      var presence = Presence(side: nil)
      if isEarly { presence.learned(policy(zone: .immediate), of: left.id) }
      for sighting in [heard(-60), heard(-45), heard(-40), nil] { presence.decided(sighting, isReplay: true) }
      if !isEarly { presence.learned(policy(zone: .immediate), of: left.id) }
      guard case .suffices(let sighting) = presence.verdict, case .beacon(let zone, true, let beacons) = sighting.proof
      else {
        Issue.record("it does not do")
        continue
      }
      #expect(zone == .immediate && beacons.first?.rssi == -45)
    }
  }

  @Test("the side that was asked for is the rider's claim, and presence has to agree with it")
  func side() throws {
    var presence = Presence(side: .right)
    presence.learned(policy(), of: left.id)
    presence.found(World.sighting(left))
    #expect(name(presence.verdict) == "left lacks \(Shortfall.otherSide)")
    presence.learned(policy(), of: right.id)
    presence.found(World.sighting(right))
    #expect(name(presence.verdict) == "right nfc")
  }

  @Test("radio, tag and code race: what the vehicle accepts wins, whatever was first")
  func race() throws {
    var presence = Presence(side: nil)
    presence.learned(policy([.beacon, .nfc], acceptsStatic: false), of: left.id)
    let label = StepLabel(vehicle: World.vehicle.uuid, step: left.id).text
    presence.found(Sighting(code: label, of: left, found: World.epoch))
    #expect(name(presence.verdict) == "left lacks \(["beacon", "nfc"])")
    presence.found(World.sighting(left))
    #expect(name(presence.verdict) == "left lacks \(Shortfall.copy)")
    presence.decided(heard(-60), isReplay: false)
    #expect(name(presence.verdict) == "left beacon")
  }

  @Test("what the rider's side takes for enough is what the controller takes for enough", arguments: Zone.allCases)
  func agreement(zone: Zone) {
    for asked in [Zone.near, .immediate] {
      for isLocated in [true, false] {
        let proof = Proof.beacon(zone: zone, isLocated: isLocated, beacons: [])
        let policy = policy(zone: asked)
        #expect((policy.shortfall(of: proof) == nil) == policy.isNearEnough(zone, isLocated: isLocated))
      }
    }
  }
}
