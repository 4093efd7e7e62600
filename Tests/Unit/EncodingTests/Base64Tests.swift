import Encoding
import Testing

@Suite("base64")
struct Base64Tests {
  @Test(
    "reads the test vectors of RFC 4648 10",
    arguments: [
      ("", ""), ("Zg==", "f"), ("Zm8=", "fo"), ("Zm9v", "foo"), ("Zm9vYg==", "foob"), ("Zm9vYmE=", "fooba"),
      ("Zm9vYmFy", "foobar"),
    ])
  func vectors(_ text: String, _ bytes: String) {
    #expect(Base64URL.decode(base64: text) == Array(bytes.utf8))
  }

  @Test("reads the two characters in which it differs from base64url, and not those of base64url")
  func alphabet() {
    #expect(Base64URL.decode(base64: "++//") == [0xFB, 0xEF, 0xFF])
    #expect(Base64URL.decode(base64: "--__") == nil)
  }

  @Test(
    "refuses padding that is missing, misplaced or too long, unused bits, and what follows the padding",
    arguments: ["Zg", "Zg=", "Z===", "====", "=", "Zg==Zg==", "Zm8=Zm9v", "Zh==", "Zm9=", "Zm9v\n", "Zm 9", "Zm9vé"])
  func refused(_ text: String) {
    #expect(Base64URL.decode(base64: text) == nil)
  }
}
