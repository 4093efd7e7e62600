import Geography
import StepProtocol
import SystemIO
import Testing

@testable import StepDaemon

@Suite("Where the vehicle stands") struct StandingPlaceTests {
  private func fix(
    _ time: Double, latitude: Double = 48.7758, accuracy: Double? = 2.5, speed: Double? = 0.1, isSimulated: Bool = false
  ) -> Fix {
    Fix(
      time: time, position: Coordinate(latitude: latitude, longitude: 9.1829)!, accuracy: accuracy, speed: speed,
      isSimulated: isSimulated)
  }

  @Test("is told when the receiver has settled, with its age, for a minute")
  func settles() {
    var standing = StandingPlace()
    let start = Instant.now
    for second in 0...8 {
      standing.take(fix(Double(second)), at: start + .seconds(second))
      #expect((standing.place(at: start + .seconds(second)) == nil) == (second < 8))
    }
    #expect(
      standing.place(at: start + .seconds(8))
        == ReportedPlace(latitude: 48.7758, longitude: 9.1829, error: 2.5, age: 0))
    standing.take(nil, at: start + .seconds(9))
    #expect(standing.place(at: start + .seconds(68))?.age == 60)
    #expect(standing.place(at: start + .seconds(69)) == nil)
  }

  @Test("is not told on the way, nor the last place of before, nor one that a receiver only plays")
  func onTheWay() {
    var (standing, played, slow) = (StandingPlace(), StandingPlace(), StandingPlace())
    let start = Instant.now
    for second in 0...60 {
      let now = start + .seconds(second)
      // It stands for ten seconds, and drives at 50 km/h.
      let drives = second > 10
      standing.take(
        fix(
          Double(second), latitude: 48.7758 + (drives ? Double(second - 10) * 13.9 / 111_200 : 0),
          speed: drives ? 13.9 : 0.2), at: now)
      played.take(fix(Double(second), isSimulated: true), at: now)
      // A receiver that tells no speed, in a vehicle that rolls at 7 km/h.
      slow.take(fix(Double(second), latitude: 48.7758 + Double(second) * 2 / 111_200, speed: nil), at: now)
      #expect((standing.place(at: now) != nil) == (8...10).contains(second), "\(second)")
      #expect(played.place(at: now) == nil && slow.place(at: now) == nil)
    }
  }

  @Test("is not told while the places wander, or are too inexact")
  func wanders() {
    var (wandering, inexact) = (StandingPlace(), StandingPlace())
    let start = Instant.now
    for second in 0...30 {
      let now = start + .seconds(second)
      wandering.take(fix(Double(second), latitude: 48.7758 + (second % 2 == 0 ? 0 : 0.001)), at: now)
      inexact.take(fix(Double(second), accuracy: 51), at: now)
      #expect(wandering.place(at: now) == nil && inexact.place(at: now) == nil)
    }
  }
}
