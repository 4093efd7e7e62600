/// When a token counts.
public struct Validity: Equatable, Sendable {
  /// Seconds of Unix time, inclusive.
  public let begin: Int64
  /// Seconds of Unix time, exclusive.
  public let end: Int64

  public init(from begin: Int64, until end: Int64) {
    self.begin = begin
    self.end = end
  }

  /// Where a moment lies.
  public enum State: Sendable {
    case notYet, now, over
  }

  /// - Parameters:
  ///   - now: seconds of Unix time.
  ///   - leeway: how many seconds before its beginning it counts already, because the clock may be slow.
  public func state(at now: Int64, leeway: Int64 = 0) -> State {
    if now + leeway < begin { return .notYet }
    return now < end ? .now : .over
  }
}

extension Token {
  public var validity: Validity { Validity(from: notBefore, until: expires) }
}
