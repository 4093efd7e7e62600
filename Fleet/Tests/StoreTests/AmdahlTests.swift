import FleetTestSupport
import Testing

@Suite struct AmdahlTests {
  /// Published figures: 1.99 and 9.99 are cut off there, not rounded.
  private static let published: [(Double, [Double])] = [
    (10, [1.29, 1.82, 5.26, 9.17]), (100, [1.33, 1.98, 9.17, 50.25]), (1_000, [1.33, 1.99, 9.91, 90.99]),
    (1_000_000, [1.33, 1.99, 9.99, 99.99]),
  ]

  @Test(arguments: published)
  func `the speed-up is the published one`(_ processors: Double, _ published: [Double]) {
    for (parallel, expected) in zip([0.25, 0.5, 0.9, 0.99], published) {
      let speedup = Amdahl.speedup(parallel: parallel, processors: processors)
      #expect(abs(speedup - expected) < 0.01, "\(parallel) on \(processors)")
    }
  }

  @Test(arguments: [0, 0.1, 0.5, 1])
  func `the serial share is found again from the speed on two processors`(_ serial: Double) {
    let speedup = Amdahl.speedup(parallel: 1 - serial, processors: 2)
    #expect(abs(Amdahl.serial(speedupOnTwo: speedup) - serial) < 1e-9)
    #expect(Amdahl.serial(speedupOnTwo: 2.1) == 0 && Amdahl.serial(speedupOnTwo: 0.9) == 1)
  }
}
