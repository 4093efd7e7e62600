import Domain
import Terminal
import Testing

@testable import CommandParts
@testable import RiderCommands

@Suite("Text on a terminal") struct ViewTextTests {
  @Test(
    "counts the columns of a text",
    arguments: [
      ("", 0), ("left", 4), ("Zürich", 6), ("Zu\u{308}rich", 6), ("車両", 4), ("한국", 4), ("ﾊﾞｽ", 3), ("ｂｕｓ", 6),
      ("🚐", 2), ("●○━┄", 4), ("\u{FFFD}", 1),
    ])
  func columns(_ text: String, _ columns: Int) {
    #expect(text.columns == columns)
  }

  @Test("does not call the zone unknown of a step that one is located at")
  func openZone() throws {
    let report = try report(facing: .left, isLocated: true, reading(.left, 0.6, rssi: -54), reading(.right))
    #expect(
      report.lines == [
        "left     -         0.6 m   -54 dBm  40 packets, last 0.1 s ago",
        "right    -         -       -        0 packets",
      ])
    #expect(report.line == "12.5 s  *left  -         0.6 m    right -         -       at the left step")
  }

  @Test("truncates at a character, and says so within the limit")
  func truncation() {
    #expect("vehicle".truncated(to: 7, ellipsis: "…") == "vehicle")
    #expect("vehicle".truncated(to: 6, ellipsis: "…") == "vehic…")
    #expect("vehicle".truncated(to: 6, ellipsis: "...") == "veh...")
    #expect("車両車両".truncated(to: 6, ellipsis: "…") == "車両…")
    #expect("Zu\u{308}rich".truncated(to: 3, ellipsis: "…") == "Zu\u{308}…")
    #expect("vehicle".truncated(to: 1, ellipsis: "…") == "…")
    #expect("vehicle".truncated(to: 0, ellipsis: "…") == "")
  }

  @Test("aligns by columns")
  func alignment() {
    #expect("車".aligned(to: 4) == "車  ")
    #expect("車".aligned(to: 4, right: true) == "  車")
    #expect("vehicle".aligned(to: 4) == "vehicle")
  }

  @Test(
    "draws with ASCII where the locale is not UTF-8: the first variable that is set decides",
    arguments: [
      (["LANG": "de_DE.UTF-8"], true), (["LANG": "C.utf8"], true), (["LANG": "en_US.UTF-8@euro"], true), ([:], false),
      (["LANG": "C"], false), (["LC_ALL": "C", "LANG": "de_DE.UTF-8"], false),
      (["LC_ALL": "", "LC_CTYPE": "C.UTF-8", "LANG": "C"], true), (["LC_CTYPE": "de_DE.ISO-8859-1"], false),
    ])
  func locale(_ environment: [String: String], _ isUnicode: Bool) {
    #expect(Glyphs.isUnicode(environment) == isUnicode)
  }
}
