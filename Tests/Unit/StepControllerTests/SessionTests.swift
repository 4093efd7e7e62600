import Domain
import Encoding
import StepController
import StepProtocol
import Testing

@Suite("What makes a command good once") struct SessionTests {
  var session = Session(epoch: [UInt8](repeating: 7, count: 16), steps: [left, right], used: [])
  let alice = SigningKey().verificationKey
  let bob = SigningKey().verificationKey

  func move(_ challenge: [UInt8], deadline: Int64 = 5_000) -> Command.Move {
    Command.Move(
      target: .open, epoch: session.epoch, challenge: challenge, deadline: deadline, proof: .code(content: "x"),
      proofTime: 0)
  }

  @Test("a good challenge voids the device's others for the step, older ones and newer ones, and nobody else's")
  mutating func olderAfterNewer() {
    let older = session.challenge(for: alice, left, at: 0)
    let used = session.challenge(for: alice, left, at: 0)
    let newer = session.challenge(for: alice, left, at: 0)
    let elsewhere = session.challenge(for: alice, right, at: 0)
    let bobs = session.challenge(for: bob, left, at: 0)
    #expect(session.redeem(move(used), by: alice, for: left, at: 1) == nil)
    #expect(session.redeem(move(older), by: alice, for: left, at: 1) == .expired)
    #expect(session.redeem(move(newer), by: alice, for: left, at: 1) == .expired)
    #expect(session.redeem(move(elsewhere), by: alice, for: right, at: 1) == nil)
    #expect(session.redeem(move(bobs), by: bob, for: left, at: 1) == nil)
  }

  @Test("a challenge that is not good voids nothing newer: a broker can deliver an old command whenever it likes")
  mutating func notGood() {
    let late = session.challenge(for: alice, left, at: 0)
    let good = session.challenge(for: alice, left, at: 0)
    #expect(session.redeem(move(late), by: alice, for: left, at: 5_000) == .expired)
    #expect(session.redeem(move(good, deadline: 9_000), by: alice, for: left, at: 5_000) == nil)
  }

  @Test("a move that waits stands until a later command of its device, or a stop, voids it")
  mutating func standing() {
    let first = move(session.challenge(for: alice, left, at: 0))
    #expect(!session.stands(first, by: alice, for: left))
    #expect(session.redeem(first, by: alice, for: left, at: 1) == nil)
    #expect(session.stands(first, by: alice, for: left))
    let second = move(session.challenge(for: alice, left, at: 2))
    let bobs = move(session.challenge(for: bob, left, at: 2))
    let elsewhere = move(session.challenge(for: alice, right, at: 2))
    #expect(session.redeem(second, by: alice, for: left, at: 3) == nil)
    #expect(session.redeem(bobs, by: bob, for: left, at: 3) == nil)
    #expect(session.redeem(elsewhere, by: alice, for: right, at: 3) == nil)
    #expect(!session.stands(first, by: alice, for: left) && session.stands(second, by: alice, for: left))
    #expect(session.stands(bobs, by: bob, for: left))
    session.void(for: left)
    #expect(!session.stands(second, by: alice, for: left) && !session.stands(bobs, by: bob, for: left))
    #expect(session.stands(elsewhere, by: alice, for: right))
  }

  @Test("a stop voids every device's challenges for its step, and no other step's")
  mutating func stopped() {
    let alices = session.challenge(for: alice, left, at: 0)
    let bobs = session.challenge(for: bob, left, at: 0)
    let elsewhere = session.challenge(for: alice, right, at: 0)
    session.void(for: left)
    #expect(session.redeem(move(alices), by: alice, for: left, at: 1) == .expired)
    #expect(session.redeem(move(bobs), by: bob, for: left, at: 1) == .expired)
    #expect(session.redeem(move(elsewhere), by: alice, for: right, at: 1) == nil)
    let fresh = session.challenge(for: alice, left, at: 2)
    #expect(session.redeem(move(fresh), by: alice, for: left, at: 3) == nil)
  }

  @Test("no flood of other commands makes a stop that was seen look new")
  mutating func rememberedStops() {
    let stop = CommandDigest(of: [0])
    let request = Command.Request.stop(epoch: session.epoch)
    #expect(session.admit(stop, request) == true)
    for number in 0..<3_000 {
      _ = session.admit(CommandDigest(of: [1, UInt8(number >> 8), UInt8(number & 0xFF)]), .status)
    }
    #expect(session.admit(stop, request) == false)
  }

  @Test("a device that waits keeps its challenge, whatever others ask", arguments: [(33, 8), (10_000, 2)])
  mutating func crowd(devices: Int, questions: Int) {
    let alices = session.challenge(for: alice, left, at: 0)
    for number in 0..<devices {
      let device = stranger(number)
      for _ in 0..<questions { _ = session.challenge(for: device, left, at: 1) }
    }
    #expect(session.redeem(move(alices, deadline: 10_001), by: alice, for: left, at: 9_999) == nil)
  }

  @Test("... and whatever they use")
  mutating func crowdThatMoves() {
    let alices = session.challenge(for: alice, left, at: 0)
    let waiting = move(session.challenge(for: bob, left, at: 0))
    #expect(session.redeem(waiting, by: bob, for: left, at: 0) == nil)
    for number in 0..<10_000 {
      let device = stranger(number)
      let theirs = session.challenge(for: device, left, at: 1)
      #expect(session.redeem(move(theirs), by: device, for: left, at: 1) == nil)
    }
    #expect(session.stands(waiting, by: bob, for: left))
    #expect(session.redeem(move(alices, deadline: 10_001), by: alice, for: left, at: 9_999) == nil)
  }

  @Test("a device's own questions do not make its challenge unknown")
  mutating func talkative() {
    let first = session.challenge(for: alice, left, at: 0)
    for _ in 0..<10_000 { _ = session.challenge(for: alice, left, at: 1) }
    #expect(session.redeem(move(first), by: alice, for: left, at: 2) == nil)
  }

  @Test("a use that was forgotten for want of room does not come back, and what is kept is bounded")
  mutating func bounded() throws {
    let alices = move(session.challenge(for: alice, left, at: 0))
    let bobs = move(session.challenge(for: bob, left, at: 0))
    #expect(session.redeem(alices, by: alice, for: left, at: 0) == nil)
    for number in 0..<Session.mostUses + 1_000 {
      let device = stranger(number)
      let theirs = session.challenge(for: device, left, at: 1)
      #expect(session.redeem(move(theirs), by: device, for: left, at: 1) == nil)
      if number.isMultiple(of: 500) { try #expect(kept() <= Session.mostUses) }
    }
    try #expect(kept() <= Session.mostUses)
    // Alice's use and her challenge's name are forgotten. Whatever was given before that is worthless, Bob's too.
    #expect(session.redeem(alices, by: alice, for: left, at: 2) == .expired)
    #expect(session.redeem(bobs, by: bob, for: left, at: 2) == .expired)
    let fresh = session.challenge(for: bob, left, at: 2)
    #expect(session.redeem(move(fresh), by: bob, for: left, at: 2) == nil)
  }

  @Test("uses are forgotten after 10 seconds")
  mutating func forgotten() throws {
    for number in 0..<100 {
      let device = stranger(number)
      let theirs = session.challenge(for: device, left, at: 0)
      #expect(session.redeem(move(theirs), by: device, for: left, at: 0) == nil)
    }
    let alices = session.challenge(for: alice, left, at: 10_000)
    #expect(session.redeem(move(alices, deadline: 10_001), by: alice, for: left, at: 10_000) == nil)
    try #expect(kept() == 1)
  }

  @Test("a challenge is good for less than 10 seconds, also if more were made in a millisecond than it has numbers")
  mutating func lifetime() {
    let first = session.challenge(for: alice, left, at: 1_000)
    for _ in 0..<300 { _ = session.challenge(for: bob, left, at: 1_000) }
    let last = session.challenge(for: bob, left, at: 1_000)
    #expect(session.redeem(move(first, deadline: 12_000), by: alice, for: left, at: 11_000) == .expired)
    #expect(session.redeem(move(last, deadline: 12_000), by: bob, for: left, at: 10_999) == nil)
  }

  @Test("a used challenge is refused as replayed, and a copy does not take the device's next challenge")
  mutating func replayed() {
    let first = move(session.challenge(for: alice, left, at: 0))
    #expect(session.redeem(first, by: alice, for: left, at: 1) == nil)
    let next = move(session.challenge(for: alice, left, at: 1))
    #expect(session.redeem(first, by: alice, for: left, at: 1) == .replayed)
    #expect(session.redeem(next, by: alice, for: left, at: 1) == nil)
  }

  @Test("a challenge that was used is not good again when 1,024 others were used after it")
  mutating func replayedLater() {
    let first = move(session.challenge(for: alice, left, at: 0))
    #expect(session.redeem(first, by: alice, for: left, at: 0) == nil)
    for number in 0..<1_100 {
      let device = stranger(number)
      #expect(session.redeem(move(session.challenge(for: device, left, at: 0)), by: device, for: left, at: 0) == nil)
    }
    #expect(session.redeem(first, by: alice, for: left, at: 1) == .expired)
  }

  @Test(
    "a challenge that arrived on another step's topic, or after its deadline, is used up with the device's older ones")
  mutating func usedUp() {
    let older = session.challenge(for: alice, left, at: 0)
    let misdirected = session.challenge(for: alice, left, at: 0)
    let late = session.challenge(for: alice, left, at: 0)
    let good = session.challenge(for: alice, left, at: 0)
    #expect(session.redeem(move(misdirected), by: alice, for: right, at: 1) == .expired)
    #expect(session.redeem(move(older), by: alice, for: left, at: 1) == .expired)
    #expect(session.redeem(move(misdirected), by: alice, for: left, at: 1) == .replayed)
    #expect(session.redeem(move(late, deadline: 1), by: alice, for: left, at: 1) == .expired)
    #expect(session.redeem(move(late), by: alice, for: left, at: 1) == .replayed)
    #expect(session.redeem(move(good), by: alice, for: left, at: 1) == nil)
  }

  @Test("no bit of a challenge can be changed, and nobody else can use it")
  mutating func forged() {
    let alices = session.challenge(for: alice, left, at: 0)
    for bit in 0..<alices.count * 8 {
      var bent = alices
      bent[bit / 8] ^= 1 << (bit % 8)
      #expect(session.redeem(move(bent), by: alice, for: left, at: 1) == .expired)
    }
    #expect(session.redeem(move(alices), by: bob, for: left, at: 1) == .expired)
    #expect(session.redeem(move(alices), by: alice, for: left, at: 1) == nil)
  }

  @Test("a challenge of another run is not good, also where the epoch is the same")
  mutating func restarted() {
    let former = session.challenge(for: alice, left, at: 0)
    session = Session(epoch: session.epoch, steps: [left, right], used: [])
    #expect(session.redeem(move(former), by: alice, for: left, at: 1) == .expired)
    #expect(session.challenge(for: alice, left, at: 0) != former)
  }

  @Test("no challenge is given twice")
  mutating func unique() {
    var given: Set<[UInt8]> = []
    for clock in [0, 0, 0, 1, 1, 5] as [Int64] {
      for device in [alice, bob] {
        for step in [left, right] { #expect(given.insert(session.challenge(for: device, step, at: clock)).inserted) }
      }
    }
  }

  /// How many uses the session keeps.
  func kept() throws -> Int {
    let uses = try #require(Mirror(reflecting: session).children.first { $0.label == "uses" })
    return Mirror(reflecting: uses.value).children.count
  }

  /// One of any number of devices, which signs nothing here.
  func stranger(_ number: Int) -> VerificationKey {
    // 2 is not the y of a point of small order, and nothing here looks for x.
    try! VerificationKey([2] + Int64(number).bigEndianBytes + [UInt8](repeating: 0, count: 23))
  }
}
