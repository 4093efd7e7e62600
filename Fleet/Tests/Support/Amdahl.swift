/// How much faster work becomes on several processors if a part of it runs on one at a time (Gene Amdahl, 1967).
package enum Amdahl {
  /// - Parameters:
  ///   - parallel: the share of the work that can run side by side, 0 to 1.
  ///   - processors: how many there are.
  package static func speedup(parallel: Double, processors: Double) -> Double {
    1 / ((1 - parallel) + parallel / processors)
  }

  /// The share that runs on one processor at a time, from the speed on two processors and on one: the speed-up
  /// 1 / (S + (1 - S) / 2), solved for S. It is 0 where two processors are twice as fast or faster, and 1 where they
  /// are no faster.
  package static func serial(speedupOnTwo speedup: Double) -> Double { min(max(2 / speedup - 1, 0), 1) }
}
