import Domain
import StepController
import StepProtocol
import Testing

@Suite("What makes a command good once") struct SessionTests {
  var session = Session(epoch: [UInt8](repeating: 7, count: 16), used: [])
  let alice = SigningKey().verificationKey
  let bob = SigningKey().verificationKey

  func move(_ challenge: [UInt8]) -> Command.Move {
    Command.Move(
      target: .open, epoch: session.epoch, challenge: challenge, deadline: 5_000, proof: .code(content: "x"),
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

  @Test("a challenge that is not good voids nothing: a broker can deliver an old command whenever it likes")
  mutating func notGood() {
    let late = session.challenge(for: alice, left, at: 0)
    let good = session.challenge(for: alice, left, at: 0)
    #expect(session.redeem(move(late), by: alice, for: left, at: 5_000) == .expired)
    let lateAgain = Command.Move(
      target: .open, epoch: session.epoch, challenge: good, deadline: 9_000, proof: .code(content: "x"), proofTime: 0)
    #expect(session.redeem(lateAgain, by: alice, for: left, at: 5_000) == nil)
  }

  @Test("a move that waits stands until a later command of its device, or a stop, voids it")
  mutating func standing() {
    let first = move(session.challenge(for: alice, left, at: 0))
    #expect(!session.stands(first))
    #expect(session.redeem(first, by: alice, for: left, at: 1) == nil)
    #expect(session.stands(first))
    let second = move(session.challenge(for: alice, left, at: 2))
    let bobs = move(session.challenge(for: bob, left, at: 2))
    let elsewhere = move(session.challenge(for: alice, right, at: 2))
    #expect(session.redeem(second, by: alice, for: left, at: 3) == nil)
    #expect(session.redeem(bobs, by: bob, for: left, at: 3) == nil)
    #expect(session.redeem(elsewhere, by: alice, for: right, at: 3) == nil)
    #expect(!session.stands(first) && session.stands(second) && session.stands(bobs))
    session.void(for: left)
    #expect(!session.stands(second) && !session.stands(bobs) && session.stands(elsewhere))
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

  @Test("a device holds eight challenges; the ninth takes the place of the oldest")
  mutating func eight() {
    let all = (0..<9).map { _ in session.challenge(for: alice, left, at: 0) }
    #expect(session.redeem(move(all[0]), by: alice, for: left, at: 1) == .expired)
    #expect(session.redeem(move(all[1]), by: alice, for: left, at: 1) == nil)
  }
}
