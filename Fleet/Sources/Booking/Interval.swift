/// A half-open interval: the end is not part of it. Unix time, seconds.
package struct Interval: Hashable, Sendable {
  package let begin: Int64
  package let end: Int64

  package init(_ begin: Int64, _ end: Int64) { (self.begin, self.end) = (begin, end) }

  package var length: Int64 { end - begin }

  package func overlaps(_ other: Interval) -> Bool { begin < other.end && other.begin < end }
}
