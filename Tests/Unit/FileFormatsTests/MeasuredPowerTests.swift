import Domain
import FileFormats
import Operator
import Testing

@Suite("measured powers in vehicle files")
struct MeasuredPowerTests {
  private func setting(_ power: Int8, of step: String = "left", in text: String) throws -> String {
    String(
      decoding: try VehicleFile.setting(
        measuredPower: power, of: StepID(step)!, in: Array(text.utf8), path: "vehicle.toml"), as: UTF8.self)
  }

  private static let head = "name = \"Van\" # ours\nuuid = \"5f3c1c0e-7a0b-4f57-9a55-1f0f6c1b2a90\"\n"

  private static func steps(_ left: String = "", _ right: String = "") -> String {
    """
    # measured_power = 5 is not this
    [[steps]]
    id = "left"   # major = 1
    side = "left"
    major = 1  # the blue one
    \(left)
    [[steps]]
      id = "right"
      side = "right"
    \tmajor = 0x2
    \(right)
    [rider]
    name = "Ada" # major = 2
    device_key = "device.jwk"
    token = "token.jwt"
    """
  }

  @Test("are read, and are from -128 to 127")
  func read() throws {
    func power(_ text: String) throws -> Int8? {
      let text = Self.head + Self.steps("measured_power = \(text)")
      return try VehicleFile(parsing: Array(text.utf8), path: "vehicle.toml").vehicle.steps[0].measuredPower
    }
    #expect(try power("-128") == -128)
    #expect(try power("127") == 127)
    for wrong in ["-129", "128", "\"-59\"", "-59.5"] {
      let error = ConfigurationError(
        "vehicle.toml", line: 8, "[[steps]] measured_power: expected an integer from -128 to 127, found \(wrong)")
      #expect(throws: error) { try power(wrong) }
    }
  }

  @Test("are written with the file")
  func rendered() throws {
    let text = Self.head + Self.steps("measured_power = -62")
    let file = try VehicleFile(parsing: Array(text.utf8), path: "vehicle.toml")
    let again = try VehicleFile(parsing: Array(file.render().utf8), path: "vehicle.toml")
    #expect(again == file)
    #expect(file.render().contains("measured_power = -62\n"))
    #expect(!file.render().contains("measured_power = nil"))
  }

  @Test("are noted behind the major, on a line of their own, and every other byte stays")
  func inserted() throws {
    #expect(
      try setting(-62, in: Self.head + Self.steps())
        == (Self.head + Self.steps()).replacing("# the blue one\n", with: "# the blue one\nmeasured_power = -62\n"))
    #expect(
      try setting(-62, of: "right", in: Self.head + Self.steps())
        == (Self.head + Self.steps()).replacing("\tmajor = 0x2\n", with: "\tmajor = 0x2\n\tmeasured_power = -62\n"))
  }

  @Test(
    "take the place of one that is there, and its comment stays",
    arguments: [
      "measured_power = -59 # by hand", "measured_power=-59", "  \"measured_power\"  =  -0\t# x",
      "measured_power = 0x7F",
    ])
  func replaced(line: String) throws {
    let text = Self.head + Self.steps(line)
    let value = try #require(line.split(separator: "=")[1].split(whereSeparator: \.isWhitespace).first)
    let expected = text.replacing(line, with: line.replacing(String(value), with: "-62"))
    #expect(try setting(-62, in: text) == expected)
  }

  @Test("one that is right already stays as it is written")
  func unchanged() throws {
    let text = Self.head + Self.steps("measured_power = -6_2 # not the usual way")
    #expect(try setting(-62, in: text) == text)
  }

  @Test("go into inline tables, all on one line")
  func inline() throws {
    let text = """
      steps = [{ id = "left", side = "left", major = 1 }, {major=2,measured_power=-50,id="right",side="right"}] # 1

      """
    #expect(
      try setting(-62, in: Self.head + text)
        == Self.head + text.replacing("left\", major = 1 }", with: "left\", major = 1, measured_power = -62 }"))
    #expect(
      try setting(-62, of: "right", in: Self.head + text) == Self.head + text.replacing("-50", with: "-62"))
  }

  @Test("keep the line ends that a file has, and the lack of one at its end")
  func lineEnds() throws {
    let text = (Self.head + Self.steps()).replacing("\n", with: "\r\n")
    #expect(
      try setting(-62, in: text)
        == text.replacing("# the blue one\r\n", with: "# the blue one\r\nmeasured_power = -62\r\n"))
    let short = Self.head + "[[steps]]\nside = \"left\"\nid = \"left\"\nmajor = 1"
    #expect(try setting(-62, in: short) == short + "\nmeasured_power = -62")
  }

  @Test(
    "is found however the file is written",
    arguments: [
      // A key in escapes, a comment that looks like it, a value at the end of a file.
      "[[steps]]\nside = \"left\"\nid = \"left\"\nmajor = 1\n\"measured_p\\u006Fwer\" = §-50§\n",
      "[[steps]]\nside = \"left\"\nid = \"left\"\nmajor = 1\nmeasured_power = §-50§ # measured_power = -50",
      "[[steps]]\nside = \"left\"\nid = \"left\"\nmajor = 1\nmeasured_power = §-50§",
      "[[steps]]\r\nside = \"left\"\r\nid = \"left\"\r\nmeasured_power = §-50§\r\nmajor = 1\r\n",
      // Several tables on a line, and each on a line of its own.
      "steps = [{side='right',id='right',major=2,measured_power=-50},{measured_power=§-50§,side='left',id='left',major=1}]",
      "steps = [ # é\n  { side = \"left\", id = \"left\", major = 1§, measured_power = -62§ }, # left\n]",
    ])
  func found(steps: String) throws {
    let parts = steps.split(separator: "§", omittingEmptySubsequences: false)
    let isNew = parts[1].hasPrefix(",")
    let text = Self.head + parts[0] + (isNew ? "" : "-50") + parts[2]
    #expect(try setting(-62, in: text) == Self.head + parts[0] + (isNew ? parts[1] : "-62") + parts[2])
  }

  @Test("is found behind a byte order mark, on the first line")
  func mark() throws {
    let steps = "\u{FEFF}steps = [{ id = \"left\", side = \"left\", major = 1, measured_power = -50 }]\n"
    #expect(try setting(-62, in: steps + Self.head) == steps.replacing("-50", with: "-62") + Self.head)
  }

  @Test("what cannot be edited is refused, with what to do")
  func refused() {
    // The line would become longer than a line may be.
    let comment = String(repeating: "x", count: 960)
    let long = Self.head + "steps = [{ id = \"left\", side = \"left\", major = 1 }] #\(comment)"
    let error = ConfigurationError(
      "vehicle.toml", line: 3, "[[steps]] cannot be edited as it is written; give each key a line of its own")
    #expect(throws: error) { try setting(-62, in: long) }
    #expect(throws: ConfigurationError("vehicle.toml", "there is no longer a step \"left\"")) {
      try setting(-62, in: Self.head + Self.steps().replacing("\"left\"   #", with: "\"front\"   #"))
    }
  }
}
