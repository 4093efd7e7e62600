import Geography
import Testing

@Suite("A receiver that settles, and the way to a vehicle") struct SettlingTests {
  private let plane = LocalPlane(at: Coordinate(latitude: 48.7758, longitude: 9.1829)!)

  /// So many metres to the north and to the east.
  private func fix(
    _ time: Double, north: Double = 0, east: Double = 0, accuracy: Double? = 8, course: Double? = nil,
    speed: Double? = nil
  ) -> Fix {
    Fix(
      time: time, position: plane.place(of: Vector(x: north, y: east))!, accuracy: accuracy, course: course,
      speed: speed)
  }

  private func settling(_ fixes: [Fix?]) -> Settling {
    var settling = Settling()
    for fix in fixes { settling.take(fix) }
    return settling
  }

  @Test("who stands still is found after eight seconds")
  func still() {
    #expect(settling([]).state == .none)
    let fixes = (0...8).map { fix(Double($0), north: Double($0 % 2)) }
    #expect(settling(Array(fixes.dropLast())).state == .wandering(fixes[7]))
    #expect(settling(fixes).state == .settled(fixes[8]))
  }

  @Test("who walks is found, too, and who sits in a train")
  func moving() {
    let walk = (0...20).map { fix(Double($0), north: 1.4 * Double($0), speed: 1.4) }
    #expect(settling(walk).state == .settled(walk[20]))
    let train = (0...20).map { fix(Double($0), north: 50 * Double($0), speed: 50) }
    #expect(settling(train).state == .settled(train[20]))
  }

  @Test("a place that wanders, jumps or is not accurate is not relied on")
  func wandering() {
    // Drifts by 4 m/s though it says that it stands.
    let drift = (0...20).map { fix(Double($0), north: 4 * Double($0), speed: 0.1) }
    #expect(settling(drift).state == .wandering(drift[20]))
    let jump = (0...20).map { fix(Double($0), east: $0 < 17 ? 0 : 60) }
    #expect(settling(jump).state == .wandering(jump[20]))
    let vague = (0...20).map { fix(Double($0), accuracy: 80) }
    #expect(settling(vague).state == .wandering(vague[20]))
    // A jump is forgotten after as long.
    let calm = jump + (21...30).map { fix(Double($0), east: 60) }
    #expect(settling(calm).state == .settled(fix(30, east: 60)))
  }

  @Test("a receiver that tells no accuracy is taken for a bad one")
  func silent() {
    let silent = (0...20).map { fix(Double($0), accuracy: nil) }
    #expect(settling(silent).state == .settled(silent[20]))
    // Walks without saying so.
    let far = (0...20).map { fix(Double($0), north: 6 * Double($0), accuracy: nil) }
    #expect(settling(far).state == .wandering(far[20]))
  }

  @Test("after the fix was lost, or nothing came, it begins again")
  func lost() {
    let fixes: [Fix?] = (0...10).map { fix(Double($0)) }
    #expect(settling(fixes + [nil]).state == .none)
    #expect(settling(fixes + [nil, fix(12)]).state == .wandering(fix(12)))
    #expect(settling(fixes + [fix(16)]).state == .wandering(fix(16)))
    // A clock that goes back.
    #expect(settling(fixes + [fix(3)]).state == .wandering(fix(3)))
  }

  @Test("a direction is given where it cannot be far off")
  func direction() throws {
    let goal = plane.place(of: Vector(x: 100, y: 100))!
    let way = Way(from: fix(0), to: goal)
    let direction = try #require(way.direction)
    #expect(
      abs(way.distance - 141.4) < 0.5 && abs(direction.bearing - 45) < 0.2 && abs(direction.accuracy - 3.24) < 0.1)
    #expect(way.turn == nil)
    // As far off as it is away: any direction would do as well.
    #expect(Way(from: fix(0, accuracy: 142), to: goal).direction == nil)
    let guessed = Way(from: fix(0, accuracy: nil), to: goal)
    #expect(guessed.accuracy == Settling.assumed)
    #expect(try #require(guessed.direction).accuracy > 10)
    #expect(Way(from: fix(0, north: 100, east: 100), to: goal).direction == nil)
  }

  @Test(
    "who walks is told to turn", arguments: [(0.0, 45.0), (90, -45), (350, 55), (225, -180), (224, -179), (226, 179)])
  func turn(course: Double, turn: Double) throws {
    let goal = plane.place(of: Vector(x: 100, y: 100))!
    let way = Way(from: fix(0, course: course, speed: 1.3), to: goal)
    let told = try #require(way.turn)
    #expect(abs((told - turn + 540).truncatingRemainder(dividingBy: 360) - 180) < 0.2 && (-180..<180).contains(told))
    #expect(Way(from: fix(0, course: course, speed: 0.2), to: goal).turn == nil)
  }
}
