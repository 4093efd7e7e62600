import Testing

@testable import Access

@Suite("What is in a mail") struct ReceivedTextTests {
  private let signature = String(repeating: "s", count: 86)
  private var code: String { "eyJhbGciOiJ4In0.eyJhIjoxfQ.\(signature)" }
  private var access: String { #"{"vehicle":"\#(code)","token":"a.b.c","certificate":"MAA"}"# }

  @Test("an access file is found among headers and words")
  func mail() {
    let mail = """
      From: =?utf-8?q?K=C3=A4the?= <fleet@example.org>\r
      Content-Type: text/plain; charset="utf-8"\r
      \r
      Dear Anna, {this} is for you:\r
      \r
      \(access)\r
      \r
      Regards
      """
    #expect(ReceivedText.texts(in: mail).first == access)
    #expect(ReceivedText.texts(in: access) == [access])
    #expect(ReceivedText.texts(in: "\u{FEFF}\(access)\n").first == access)
  }

  @Test("broken, quoted and quoted-printable lines are put together")
  func lines() {
    let pieces = stride(from: 0, to: access.count, by: 40).map { access.dropFirst($0).prefix(40) }
    #expect(ReceivedText.texts(in: pieces.joined(separator: "\n")).first == access)
    #expect(ReceivedText.texts(in: pieces.map { "> > \($0)" }.joined(separator: "\r\n")).first == access)
    #expect(ReceivedText.texts(in: pieces.joined(separator: "=\r\n")).first == access)
    let broken = code.prefix(20) + "\r\n  " + code.dropFirst(20)
    #expect(ReceivedText.texts(in: "here: \(broken)\r\n-- \r\nBus Ltd.") == [code])
  }

  @Test("a part in base64 is read")
  func base64() {
    // `code` and a line end, with "eyJhIjoxfQ" and its signature.
    let part = "ZXlKaGJHY2lPaUo0SW4wLmV5SmhJam94ZlEu" + String(repeating: "c3Nz", count: 28) + "c3MK"
    let mail = "Content-Transfer-Encoding: base64\n\n\(part.prefix(76))\n\(part.dropFirst(76))\n\n--b--\n"
    #expect(ReceivedText.texts(in: mail) == [code])
  }

  @Test(
    "nothing is found where nothing is",
    arguments: [
      "", "{}", "{{{{", "}{", "eyJ", "eyJ.eyJ.", "name = \"Van\"\n[broker]\nhost = \"x\"\n",
      #"{"uuid":"5f3c1c0e-7a0b-4f57-9a55-1f0f6c1b2a90","stepId":"left"}"#, "https://example.org/",
    ])
  func nothing(_ mail: String) { #expect(ReceivedText.texts(in: mail) == []) }

  @Test("an access file without its end is none, nor is what is in it")
  func truncated() { #expect(ReceivedText.texts(in: String(access.dropLast(5))) == []) }

  @Test("a signature that is longer or shorter is none")
  func lengths() {
    #expect(ReceivedText.texts(in: code + "s") == [] && ReceivedText.texts(in: String(code.dropLast())) == [])
    #expect(ReceivedText.texts(in: "a\(code)") == [] && ReceivedText.texts(in: "\(code).a") == [code])
  }
}
