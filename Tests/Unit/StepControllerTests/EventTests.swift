import Domain
import StepProtocol
import TestSupport
import Testing

@testable import StepController

@Suite("What the operator is told") struct OperatorEventTests {
  let bench = Bench()

  private func id(_ rider: Rider) throws -> String { try Token(unverified: rider.token).id }

  @Test("a motion has a beginning and an end, each with the token's name and nobody's own")
  func motion() throws {
    let alice = bench.rider()
    _ = bench.open(as: alice)
    _ = bench.run(for: 1_100)
    let (jti, now) = (try id(alice), bench.told.map(\.time))
    #expect(
      bench.told == [
        .init(.began, time: now[0], step: left, position: .open, token: jti, method: "beacon", zone: "immediate"),
        .init(.ended, time: now[1], step: left, position: .open, token: jti),
      ])
  }

  @Test("a stop is told where it ends something, and not where nothing moves")
  func stop() throws {
    let (alice, bob) = (bench.rider(), bench.rider())
    _ = bench.stop(as: bob)
    #expect(bench.told == [])
    _ = bench.open(as: alice)
    _ = bench.run(for: 200)
    _ = bench.stop(as: bob)
    #expect(bench.told.map(\.kind) == [.began, .stopped, .ended])
    #expect(bench.told[1].token == (try id(bob)))
    #expect(bench.told[2].token == (try id(alice)))
    #expect(bench.told[2].position == .unknown)
  }

  @Test("a start is told, and what it found in the middle of a motion")
  func start() {
    bench.handle(.started)
    #expect(bench.told.map(\.kind) == [.started])
    _ = bench.open(as: bench.rider())
    _ = bench.run(for: 100)
    bench.start()
    bench.handle(.started)
    #expect(bench.told.map(\.kind) == [.started, .fault])
    #expect(bench.told[1].code == "interrupted")
  }

  @Test("a refusal says which check failed, where the rider's answer does not")
  func causes() throws {
    bench.vehicle = try Vehicle(
      name: "car", uuid: car.uuid,
      steps: [Step(id: left, side: .left, major: 1, minor: 7), Step(id: right, side: .right, major: 2)])
    bench.start()
    let alice = bench.rider()
    func refused(_ proof: Proof, time: Int64 = -500) -> VehicleEvent.Content? {
      let before = bench.told.count
      let challenge = bench.move(.open, left, as: alice)
      let move = Command.Move(
        target: .open, epoch: challenge.epoch, challenge: challenge.challenge, deadline: challenge.deadline,
        proof: proof, proofTime: bench.time.clock + time)
      _ = bench.send(alice.command(left, .move(move)))
      return bench.told.dropFirst(before).first
    }
    func heard(_ beacons: (UInt16, UInt16, Int)...) -> Proof {
      .beacon(
        zone: .near, isLocated: true,
        beacons: beacons.map {
          HeardBeacon(major: $0.0, minor: $0.1, rssi: $0.2, measuredPower: -59, packets: 9)
        })
    }
    for (proof, code, cause) in [
      (heard((1, 8, -60)), "wrong_step", "wrong_minor"), (heard((2, 7, -60)), "wrong_step", "beacon_missing"),
      (heard((1, 7, -80), (2, 7, -60)), "wrong_step", "other_nearer"),
      (.code(content: "stepctl:"), "proof_not_accepted", "method"),
    ] as [(Proof, String, String)] {
      let event = try #require(refused(proof))
      #expect((event.kind, event.code, event.cause) == (.refused, code, cause))
      #expect(event.position == .open)
      #expect(event.token == (try id(alice)))
    }
    bench.wait(30_000)
    #expect(refused(heard((1, 7, -60)), time: -20_000)?.cause == "too_old")
  }

  @Test("a rider who is refused over and over has one event a minute, and the rest are counted")
  func repeated() throws {
    let alice = bench.rider(expires: -1)
    for _ in 0..<500 { _ = bench.send(alice.command(left, .status)) }
    #expect(bench.told.count == 1)
    #expect(bench.told[0].untold == nil)
    bench.wait(60_000)
    _ = bench.send(alice.command(left, .status))
    #expect(bench.told.count == 2)
    #expect(bench.told[1].untold == 499)
  }

  @Test("a thousand riders who are refused cannot fill the space for events: 30 at once, then three a minute")
  func flood() {
    for _ in 0..<200 { _ = bench.send(bench.rider(expires: -1).command(left, .status)) }
    #expect(bench.told.count == 30)
    for _ in 0..<60 {
      bench.wait(1_000)
      _ = bench.send(bench.rider(expires: -1).command(left, .status))
    }
    #expect(bench.told.count == 33)
  }

  @Test("whoever is no rider is not told of: strangers cannot fill the space either")
  func strangers() {
    let mallory = Rider(
      device: SigningKey(), token: bench.rider(signedBy: SigningKey()).token,
      controller: bench.decryption.encryptionKey)
    _ = bench.send(mallory.command(left, .status))
    _ = bench.send([1, 2, 3])
    #expect(bench.told == [])
  }

  @Test("each notice in force is told, and an older one is not")
  func notices() {
    func notice(_ sequence: Int64) {
      let notice = Notice(
        vehicle: car.uuid, sequence: sequence, issued: 1, keys: [bench.operatorKey.verificationKey])
      bench.handle(.notice(Array(notice.signed(by: bench.operatorKey).utf8)))
    }
    notice(5)
    notice(5)
    notice(4)
    notice(6)
    #expect(bench.told.map(\.notice) == [5, 6])
  }
}
