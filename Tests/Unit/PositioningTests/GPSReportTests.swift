import Geography
import Positioning
import Testing

@Suite("gpsd's protocol") struct GPSReportTests {
  private func read(_ line: String) throws -> GPSReport { try GPSReport(parsing: Array(line.utf8), at: 7) }

  @Test("a fix is read, with the time when it came")
  func fix() throws {
    // As gpsd 3.22 writes it for a receiver of 2005.
    let line = """
      {"class":"TPV","device":"/dev/pts/1","mode":3,"time":"2025-01-23T14:34:48.280Z","ept":0.005,"lat":46.498306886,\
      "lon":7.567400477,"epx":25.475,"epy":25.404,"track":10.3788,"speed":0.091,"eph":45.600,"sep":80.445}
      """
    let place = try #require(Coordinate(latitude: 46.498306886, longitude: 7.567400477))
    #expect(
      try read(line)
        == .fix(
          Fix(time: 7, position: place, accuracy: 45.6, course: 10.3788, speed: 0.091), device: "/dev/pts/1"))
  }

  @Test("without an error of the place, those of its two axes do")
  func axes() throws {
    let place = try #require(Coordinate(latitude: 1, longitude: 2))
    let told = try read(#"{"class":"TPV","mode":2,"lat":1,"lon":2,"epx":3,"epy":4}"#)
    #expect(told == .fix(Fix(time: 7, position: place, accuracy: 5), device: nil))
    // A receiver that says 0 does not know.
    #expect(
      try read(#"{"class":"TPV","mode":2,"lat":1,"lon":2,"eph":0}"#)
        == .fix(Fix(time: 7, position: place, accuracy: nil), device: nil))
  }

  @Test("a place that a receiver only plays is known for that", arguments: [(8, true), (1, false), (9, false)])
  func simulated(status: Int, isSimulated: Bool) throws {
    guard case .fix(let fix, _) = try read(#"{"class":"TPV","mode":3,"status":\#(status),"lat":1,"lon":2}"#) else {
      Issue.record("no fix")
      return
    }
    #expect(fix.isSimulated == isSimulated)
  }

  @Test("an error of more than half the way around the earth says nothing")
  func endless() throws {
    for eph in ["2.1e7", "1e12", "1e300"] {
      let told = try read(#"{"class":"TPV","mode":2,"lat":1,"lon":2,"eph":\#(eph)}"#)
      let place = try #require(Coordinate(latitude: 1, longitude: 2))
      #expect(told == .fix(Fix(time: 7, position: place, accuracy: nil), device: nil))
    }
  }

  @Test("of several receivers the one that had a fix first counts, until it has had none for five seconds")
  func several() throws {
    var choice = ReceiverChoice()
    func takes(_ device: String, mode: Int, at time: Double) throws -> Bool {
      choice.takes(try read(#"{"class":"TPV","device":"\#(device)","mode":\#(mode),"lat":1,"lon":2}"#), at: time)
    }
    #expect(try takes("b", mode: 1, at: 0))
    #expect(try takes("a", mode: 3, at: 1))
    #expect(try !takes("b", mode: 1, at: 1) && !takes("b", mode: 3, at: 6))
    #expect(try takes("a", mode: 1, at: 6))
    #expect(try takes("b", mode: 3, at: 6.1) && !takes("a", mode: 3, at: 7))
    #expect(choice.takes(.receivers(0), at: 7) && choice.takes(.other, at: 7))
  }

  @Test("what is no fix is none")
  func none() throws {
    #expect(try read(#"{"class":"TPV","mode":1,"time":"2022-06-26T00:06:01.970Z"}"#) == .noFix(device: nil))
    #expect(try read(#"{"class":"TPV","mode":0}"#) == .noFix(device: nil))
    #expect(try read(#"{"class":"TPV","mode":3,"lat":1}"#) == .noFix(device: nil))
    #expect(try read(#"{"class":"DEVICES","devices":[]}"#) == .receivers(0))
    #expect(try read(#"{"class":"SKY","satellites":[{"PRN":1}]}"#) == .other)
    #expect(try read(#"{"class":"ERROR","message":"no"}"#) == .error("no"))
  }

  @Test(
    "what gpsd does not say is refused",
    arguments: [
      "", "x", "[]", "{}", #"{"class":1}"#, #"{"class":"TPV"}"#, #"{"class":"TPV","mode":4}"#,
      #"{"class":"TPV","mode":3,"lat":91,"lon":0}"#, #"{"class":"TPV","mode":3,"lat":"1","lon":0}"#,
      #"{"class":"TPV","mode":3,"lat":1e999,"lon":0}"#, #"{"class":"TPV","mode":3,"lat":1,"lat":2,"lon":0}"#,
      #"{"class":"DEVICES"}"#,
    ])
  func malformed(line: String) { #expect(throws: GPSReport.Malformed.self) { try read(line) } }
}
