import Encoding
import Testing

@Suite struct TimestampTests {
  @Test(arguments: [
    ("1970-01-01T00:00:00Z", 0), ("2000-02-29T12:00:00Z", 951_825_600), ("2027-03-01T09:30:00Z", 1_803_893_400),
    ("2027-03-01T10:30:00+01:00", 1_803_893_400), ("2027-03-01t09:30:00.999z", 1_803_893_400),
    ("2027-02-28T23:59:59-09:31", 1_803_893_459), ("9999-12-31T23:59:59Z", 253_402_300_799),
  ])
  func `a time is read`(_ text: String, _ seconds: Int64) {
    #expect(Timestamp.read(text) == seconds)
  }

  @Test(arguments: [
    "", "2027-03-01", "2027-03-01 09:30:00Z", "2027-02-29T00:00:00Z", "2027-13-01T00:00:00Z", "2027-03-01T24:00:00Z",
    "2027-03-01T09:30:60Z", "2027-03-01T09:30:00", "2027-03-01T09:30:00+0100", "2027-03-01T09:30:00Zx",
    "1969-12-31T23:59:59Z", "1970-01-01T00:00:00+00:01", "9999-12-31T23:59:59-00:01", "2027-03-01T09:30:00.Z",
    "٢٠٢٧-03-01T09:30:00Z",
  ])
  func `another text is none`(_ text: String) {
    #expect(Timestamp.read(text) == nil)
  }

  @Test(arguments: [
    (0, "1970-01-01T00:00:00Z"), (1_795_275_000, "2026-11-21T15:30:00Z"), (951_825_600, "2000-02-29T12:00:00Z"),
    (-1, "1969-12-31T23:59:59Z"), (253_402_300_799, "9999-12-31T23:59:59Z"),
  ])
  func `a time is written`(_ seconds: Int64, _ text: String) {
    #expect(Timestamp.text(seconds) == text)
  }

  @Test func `every time is written as it is read`() {
    for seconds in stride(from: Int64(0), to: 253_402_300_799, by: 86_400 * 17 + 12_345) {
      #expect(Timestamp.read(Timestamp.text(seconds)) == seconds)
    }
  }

  /// A booking over the night in which clocks are changed lasts as long as it says.
  @Test func `the hours around a clock change are told apart by their offsets`() {
    let before = Timestamp.read("2027-10-31T02:30:00+02:00")!
    let after = Timestamp.read("2027-10-31T02:30:00+01:00")!
    #expect(after - before == 3600)
  }
}
