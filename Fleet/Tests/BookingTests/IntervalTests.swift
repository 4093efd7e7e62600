import Booking
import Testing

@Suite struct IntervalTests {
  @Test func `two bookings that touch do not overlap`() {
    #expect(!Interval(0, 10).overlaps(Interval(10, 20)))
    #expect(Interval(0, 11).overlaps(Interval(10, 20)))
  }
}
