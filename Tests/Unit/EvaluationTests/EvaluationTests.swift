import Domain
import Evaluation
import Glibc
import Testing

/// Whole captures, and independent programs, are in `Tests/System/test_evaluate.py`.
@Suite("Evaluation") struct EvaluationTests {
  @Test(
    "Wilson's interval is the one in the literature",
    arguments: [
      // Newcombe 1998, table I, method 3: 81/263, 15/148, 0/20 and 1/29.
      (81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0, 0.1611), (1, 29, 0.0061, 0.1718),
    ])
  func wilson(_ part: Int, _ whole: Int, _ low: Double, _ high: Double) throws {
    let interval = try #require(Share(part, of: whole, independent: whole)).interval
    #expect(abs(interval.lowerBound - low) < 5e-5 && abs(interval.upperBound - high) < 5e-5)
  }

  @Test("of nothing there is no share, and an interval stays between 0 and 1")
  func limits() throws {
    #expect(Share(0, of: 0, independent: 0) == nil)
    for part in [0, 1, 7] {
      let share = try #require(Share(part, of: 7, independent: 1))
      #expect(share.interval.contains(share.value) && share.interval.lowerBound >= 0 && share.interval.upperBound <= 1)
    }
  }

  @Test("the law of points that lie on one is that one, without an error")
  func exact() throws {
    let law = try #require(DistanceLaw([0.5, 1, 3, 8].map { ($0, -3 - 10 * 2.4 * log10($0)) }))
    #expect(abs(law.exponent - 2.4) < 1e-12 && abs(law.level + 3) < 1e-12)
    #expect(law.sigma < 1e-12 && law.exponentError < 1e-12 && law.error(at: 100) < 1e-12)
    #expect(abs(law.level(at: 10) + 27) < 1e-12)
  }

  @Test("there is no law of two points, nor of one distance")
  func noLaw() {
    #expect(DistanceLaw([(1, 0), (2, -6)]) == nil)
    #expect(DistanceLaw([(2, -5), (2, -6), (2, -7)]) == nil)
  }

  @Test("the law is less certain where no position is near")
  func uncertainty() throws {
    let law = try #require(DistanceLaw([(0.5, 5), (1, 1), (2, -5), (3, -11)]))
    #expect(law.error(at: 1.3) < law.error(at: 4) && law.error(at: 4) < law.error(at: 20))
  }

  @Test(
    "a level at 1 m is off where it takes 0.3 m or 1 m out of its zone",
    arguments: [
      // 0.3 m has 10.46 dB, and is immediate from 7.5 dB. 1 m has 0 dB, and is near from -5.5 to 4.5 dB.
      (-9.0, true), (-3.6, true), (-3.0, true), (-2.9, false), (0, false), (4.4, false), (4.6, true), (9, true),
    ])
  func levelOff(_ decibels: Double, _ isOff: Bool) { #expect(SiteEvaluation.movesZones(by: decibels) == isOff) }

  @Test("quantiles of few values")
  func quantiles() {
    #expect([Double]().quantile(0.5) == nil)
    #expect([3.0].quantile(0.95) == 3)
    #expect([1.0, 2, 4].quantile(0.5) == 2 && [1.0, 2, 4].quantile(1) == 4 && [1.0, 2].quantile(0.25) == 1.25)
  }

  @Test("an outcome that waits for the road is none")
  func waiting() throws {
    #expect(try Opening(parsing: Array(#"{"waiting":"approaching","step":"left"}"#.utf8)) == nil)
    #expect(throws: Opening.Flaw.self) { try Opening(parsing: Array("{}".utf8)) }
  }

  /// Positions with the distances that they have from steps at (-1, 0) and (1, 0), turned and moved.
  private func surveyed(
    _ places: [(side: String, x: Double, y: Double)], turned angle: Double = 0, by move: Double = 0
  ) throws -> [SurveyedPosition] {
    let lines = places.enumerated().map { number, place in
      let distance = max(0.01, hypot(place.x - (place.side == "left" ? -1 : 1), place.y))
      let x = place.x * cos(angle) - place.y * sin(angle) + move
      let y = place.x * sin(angle) + place.y * cos(angle) - move
      return [distance, x, y].reduce("P\(number),\(place.side)") { line, value in
        "\(line),\((value * 1e3).rounded() / 1e3)"
      }
    }
    return try PositionsFile.read(
      Array("capture,side,distance_m,x_m,y_m\n\(lines.joined(separator: "\n"))\n".utf8))
  }

  @Test("the vehicle is where the distances of its sides' positions put the steps", arguments: [0, 1, 2.5, 4])
  func outline(_ angle: Double) throws {
    let positions = try surveyed(
      [("left", -1.3, 0.2), ("left", -2, -1), ("left", -3, 1), ("right", 1.5, 1), ("right", 2, 0), ("right", 4, -2)],
      turned: angle, by: 10)
    let vehicle = try #require(VehicleOutline(positions))
    #expect(vehicle.steps.map(\.side) == [.left, .right])
    for (step, x) in zip(vehicle.steps, [-1.0, 1]) {
      #expect(hypot(step.place.x - x * cos(angle) - 10, step.place.y - x * sin(angle) + 10) < 0.02)
    }
    // Its left rear corner, and its narrower front.
    #expect(
      hypot(
        vehicle.body[0].x - (-cos(angle) + 2.4 * sin(angle)) - 10,
        vehicle.body[0].y - (-sin(angle) - 2.4 * cos(angle)) + 10) < 0.05)
    #expect(hypot(vehicle.body[2].x - vehicle.body[3].x, vehicle.body[2].y - vehicle.body[3].y) < 1.5)
  }

  @Test("rows beside the vehicle do not mirror its steps, and one side is enough where it tells the place")
  func rows() throws {
    let rows = [-2.0, -1, 0.5, 2].flatMap { (y: Double) -> [(side: String, x: Double, y: Double)] in
      [("left", -2, y), ("right", 2.5, y)]
    }
    let vehicle = try #require(VehicleOutline(surveyed(rows)))
    #expect(hypot(vehicle.steps[0].place.x + 1, vehicle.steps[0].place.y) < 0.02)
    #expect(hypot(vehicle.steps[1].place.x - 1, vehicle.steps[1].place.y) < 0.02)
    let path = try #require(VehicleOutline(surveyed([("left", -1.3, 0), ("left", -2, 0), ("left", -4, 0)])))
    #expect(path.steps.map(\.side) == [.left] && abs(path.steps[0].place.x + 1) < 0.05)
    // The body is where nobody stood.
    #expect(path.body.allSatisfy { $0.x > -1.05 })
  }

  @Test("where coordinates and distances do not tell a step's place, no vehicle is drawn")
  func noOutline() throws {
    // A row alone may be on either side of the step; two positions are too few; and these coordinates are of elsewhere.
    #expect(try VehicleOutline(surveyed([-2.0, 0, 2].map { ("left", -2.5, $0) })) == nil)
    #expect(try VehicleOutline(surveyed([("left", -2, 0), ("left", -3, 1)])) == nil)
    let text = "capture,side,distance_m,x_m,y_m\na,left,1,0,0\nb,left,1,9,0\nc,left,1,0,9\nd,left,2,,\n"
    #expect(try VehicleOutline(PositionsFile.read(Array(text.utf8))) == nil)
    #expect(VehicleOutline([]) == nil)
  }

  @Test("whatever is in a positions file, it is read or told of")
  func positionsFile() throws {
    let good = Array("capture,side,distance_m,x_m,y_m\r\n\"a \"\"1\"\"\",left,0.5,1,-2\nb,right,3,,\n".utf8)
    let positions = try PositionsFile.read(good)
    // A spreadsheet keeps rows without content.
    #expect(try PositionsFile.read(good + Array(",, ,\r\n\n,,,\n".utf8)).count == positions.count)
    #expect(positions.map(\.capture) == ["a \"1\"", "b"])
    #expect(positions.map(\.line) == [2, 3] && positions[1].place == nil && positions[0].place?.y == -2)
    // Each byte left out, doubled and changed.
    for index in good.indices {
      for bytes in [
        Array(good[..<index] + good[(index + 1)...]), Array(good[...index] + good[index...]),
        Array(good[..<index] + [0xFF] + good[(index + 1)...]), Array(good[..<index]),
      ] {
        do throws(PositionsFile.Flaw) {
          for position in try PositionsFile.read(bytes) { #expect((0.01...1000).contains(position.distance)) }
        } catch {
          #expect(error.line >= 1 && !error.message.isEmpty)
        }
      }
    }
  }
}
