import Domain
import Testing

@Suite("A host and its port") struct HostPortTests {
  @Test(
    "are read in each form, and written in one",
    arguments: [
      ("a.example", HostPort(host: "a.example", port: 2947), "a.example:2947"),
      ("a.example:99", .init(host: "a.example", port: 99), "a.example:99"),
      ("[::1]:99", .init(host: "::1", port: 99), "[::1]:99"),
      ("[fe80::1%eth0]", .init(host: "fe80::1%eth0", port: 2947), "[fe80::1%eth0]:2947"),
      ("127.0.0.1:65535", .init(host: "127.0.0.1", port: 65535), "127.0.0.1:65535"),
    ])
  func forms(text: String, expected: HostPort, written: String) throws {
    #expect(try HostPort(text[...], usual: 2947) == expected)
    #expect(expected.description == written)
  }

  @Test(
    "are refused with what is wrong with them",
    arguments: [
      ("", HostPort.Flaw.host), (":1", .host), ("a b", .host), ("a/b", .host), ("u@a:1", .host), ("a\u{0}b:1", .host),
      ("ä:1", .host), ("[]", .host), ("[a:1", .host), ("::1", .brackets), ("a:1:2", .brackets), ("[foo]:1", .brackets),
      ("a:", .port), ("a:0", .port), ("a:01", .port), ("a:+1", .port), ("a:-1", .port), ("a:65536", .port),
      ("a:1 ", .port), ("a:١", .port),
    ])
  func flaws(text: String, flaw: HostPort.Flaw) {
    #expect(throws: flaw) { try HostPort(text[...], usual: 2947) }
  }

  @Test("a text without a port is refused where there is no usual one")
  func noUsual() {
    for text in ["a", "[::1]"] { #expect(throws: HostPort.Flaw.portMissing) { try HostPort(text[...], usual: nil) } }
  }
}
