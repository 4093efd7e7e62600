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

  @Test("whatever is in a positions file, it is read or told of")
  func positionsFile() throws {
    let good = Array("capture,side,distance_m,x_m,y_m\r\n\"a \"\"1\"\"\",left,0.5,1,-2\nb,right,3,,\n".utf8)
    let positions = try PositionsFile.read(good)
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
