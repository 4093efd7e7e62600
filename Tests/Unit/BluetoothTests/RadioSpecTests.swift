import Bluetooth
import Testing

@Suite("radio specifications")
struct RadioSpecTests {
  @Test(
    "are read and written",
    arguments: [
      ("hci0", .hci(0)), ("hci12", .hci(12)),
      ("h4:unix:/run/controller", .h4(.unix(path: "/run/controller"))),
      ("h4:tcp:localhost:9000", .h4(.tcp(host: "localhost", port: 9000))),
      ("h4:tcp:[::1]:9000", .h4(.tcp(host: "::1", port: 9000))),
      ("btsnoop:-", .btsnoop("-")), ("btsnoop:walk past: left.btsnoop", .btsnoop("walk past: left.btsnoop")),
    ] as [(String, RadioSpec)])
  func forms(text: String, spec: RadioSpec) throws {
    #expect(try RadioSpec(text) == spec)
    #expect(spec.description == text)
  }

  @Test(
    "are refused with what is wrong with them",
    arguments: [
      ("", "expected \(RadioSpec.forms)"), ("usb0", "expected \(RadioSpec.forms)"),
      ("HCI0", "expected \(RadioSpec.forms)"), ("h4:/dev/ttyS0", "expected \(RadioSpec.forms)"),
      ("hci", "an adapter is hci and its number: hci0"), ("hci-1", "an adapter is hci and its number: hci0"),
      ("hci+1", "an adapter is hci and its number: hci0"), ("hci00", "an adapter is hci and its number: hci0"),
      ("hci65536", "an adapter is hci and its number: hci0"), ("hci0 ", "an adapter is hci and its number: hci0"),
      ("btsnoop:", "the file is missing"),
      ("h4:unix:", "the path must have 1 to 107 bytes"),
      ("h4:unix:" + String(repeating: "x", count: 108), "the path must have 1 to 107 bytes"),
      ("h4:tcp:localhost", "the port is missing"), ("h4:tcp::9000", "the host is missing or malformed"),
      ("h4:tcp:a b:9000", "the host is missing or malformed"),
      ("h4:tcp:localhost:", "the port must be a number from 1 to 65535"),
      ("h4:tcp:localhost:0", "the port must be a number from 1 to 65535"),
      ("h4:tcp:localhost:http", "the port must be a number from 1 to 65535"),
      ("h4:tcp:localhost:65536", "the port must be a number from 1 to 65535"),
      ("h4:tcp:::1:9000", "an IPv6 address is written in brackets: h4:tcp:[::1]:9000"),
    ])
  func malformed(text: String, reason: String) {
    #expect(throws: MalformedRadioSpec(text: text, reason: reason)) { try RadioSpec(text) }
  }
}
