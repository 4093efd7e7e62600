import Domain
import Ranging
import Testing

@testable import RiderCommands

@Suite("Advice on a walk to the vehicle") struct ViewAdviceTests {
  @Test("asks to wait until a first frame can have come")
  func listening() throws {
    #expect(Advice(try report(at: 0.5, reading(.left), reading(.right))) == .listen)
    #expect(Advice(try report(at: 3, reading(.left), reading(.right))) == .findVehicle)
  }

  @Test("says at once that a vehicle is no longer heard")
  func lost() throws {
    let left = try reading(.left, 2, packets: 0, age: 7)
    #expect(Advice(try report(at: 2, left, reading(.right))) == .findVehicle)
  }

  @Test("leads from far away to a side, to the step, and to the command")
  func approach() throws {
    let right = try reading(.right, 9, .far)
    #expect(Advice(try report(reading(.left, 8, .far), right)) == .comeCloser(nil))
    #expect(Advice(try report(facing: .left, reading(.left, 4, .far), right)) == .comeCloser(.left))
    #expect(Advice(try report(facing: .left, reading(.left, 1.5, .near), right)) == .faceStep(.left))
    #expect(Advice(try report(facing: .left, isLocated: true, reading(.left, 1, .near), right)) == .open(.left))
  }

  @Test("leads a rider who faces another step than the one they asked for to its side, and no other rider")
  func otherSide() throws {
    let right = try reading(.right, 9, .far)
    let towards = try report(facing: .left, reading(.left, 4, .far), right)
    #expect(Advice(towards, to: .right) == .goTo(.right))
    #expect(Advice(towards, to: .right).sentence(naming: "car") == "go to the right side")
    #expect(Advice(towards, to: .left) == .comeCloser(.left))
    let there = try report(facing: .left, isLocated: true, reading(.left, 1, .near), right)
    #expect(Advice(there, to: .right) == .goTo(.right))
    #expect(Advice(try report(reading(.left, 8, .far), right), to: .right) == .comeCloser(nil))
  }

  @Test("a device may be a laptop: nobody is told of a phone")
  func device() {
    for advice in [Advice.holdInFront(.left), .takeInHand, .helpRadio] {
      #expect(!advice.sentence(naming: "car").contains("phone"))
    }
  }

  @Test("asks to stand in front of one step where both are near")
  func between() throws {
    #expect(Advice(try report(reading(.left, 1.5, .near), reading(.right, 1.8, .near))) == .faceOneStep)
  }

  @Test("says that two beacons send as one step's")
  func contested() throws {
    let left = try reading(.left, 1, isContested: true)
    #expect(Advice(try report(left, reading(.right, 9, .far))) == .removeBeacon(left.step.id))
  }

  @Test("says that a beacon is heard without a level, whatever else is heard")
  func unlevelled() throws {
    let left = try reading(.left, isUnlevelled: true)
    let heard = try report(missing: .unlevelled, left, reading(.right, 0.5, .immediate))
    #expect(Advice(heard) == .unlevelled(left.step.id))
    #expect(try Advice(report(missing: .unlevelled, left, reading(.right))) == .unlevelled(left.step.id))
  }

  @Test("asks for the device where a near beacon is hardly heard")
  func pocket() throws {
    let right = try reading(.right)
    #expect(Advice(try report(facing: .left, reading(.left, 1, .near, packets: 2), right)) == .takeInHand)
    #expect(Advice(try report(facing: .left, reading(.left, 1, .near, age: 2.6), right)) == .takeInHand)
    #expect(Advice(try report(facing: .left, reading(.left, 6, .far, packets: 2), right)) == .comeCloser(.left))
    // Heard well, but as from afar, however long one stands there.
    #expect(Advice(try report(facing: .left, for: 5, reading(.left, 2.5, .near), right)) == .helpRadio)
    #expect(Advice(try report(facing: .left, for: 4, reading(.left, 2.5, .near), right)) == .comeCloser(.left))
    #expect(Advice(try report(facing: .left, for: 60, reading(.left, 6, .far), right)) == .comeCloser(.left))
    // In the first moment there is little of everything.
    #expect(Advice(try report(at: 0.5, facing: .left, reading(.left, 1, .near, packets: 2), right)) == .faceStep(.left))
  }

  @Test("asks to hold the phone in front where the level falls short by what a body takes")
  func body() throws {
    func advice(for facedFor: Double, _ missing: Location.Missing) throws -> Advice {
      let right = try reading(.right, 9, .far)
      return Advice(try report(facing: .left, for: facedFor, missing: missing, reading(.left, 2.5, .near), right))
    }
    #expect(try advice(for: 3, .bodyBetween(by: 4)) == .holdInFront(.left))
    #expect(try advice(for: 2, .bodyBetween(by: 4)) == .comeCloser(.left))
    #expect(try advice(for: 3, .tooFar(by: 9)) == .comeCloser(.left))
  }
}
