import Dispatch
import Encoding
import Testing
import Web

@testable import Login

private func asks(_ pace: inout DeviceGrant.Pace, at now: Int64) -> Bool { pace.isTooFast(at: now) }
private func takes(_ limit: inout Limit, _ key: String, at now: Int64) -> Int64? { limit.take(key, at: now) }

@Suite("The parts of a login")
struct PartsTests {
  @Test("a user code has no vowels, and is read as people type it")
  func userCodes() {
    for _ in 0..<200 {
      let code = UserCode(systemRandomness)
      let text = code.description
      #expect(text.utf8.count == 9)
      #expect(text.allSatisfy { "BCDFGHJKLMNPQRSTVWXZ-".contains($0) })
      for typed in [text, text.lowercased(), text.filter { $0 != "-" }, " \(text.prefix(4)) \(text.suffix(4)) "] {
        #expect(UserCode(typed) == code, "\(typed)")
      }
    }
    for typed in ["", "BCDF-GHJ", "BCDF-GHJKL", "ABCD-EFGH", "BCDF_GHJK", "1CDF-GHJK", "ＢCDF-GHJK", "B\u{301}CDF-GHJK"]
    {
      #expect(UserCode(typed) == nil, "\(typed)")
    }
  }

  @Test("bytes that would make some letters likelier than others are left out")
  func fairLetters() {
    let code = UserCode { _ in [255, 20, 254, 21, 240, 22, 241, 23, 242, 24, 243, 25, 244, 26, 245, 27] }
    #expect(code.description == "BCDF-GHJK")
  }

  @Test("a mailed code has six digits, with zeros in front")
  func mailedCodes() {
    #expect(MailedCode { _ in [0, 0, 0, 7] }.description == "000007")
    #expect(MailedCode("123 456")?.description == "123456")
    for typed in ["", "12345", "1234567", "12345a", "١٢٣٤٥٦", "-12345", "+12345"] { #expect(MailedCode(typed) == nil) }
    let code = MailedCode("123456")!
    #expect(code.digest(for: "a") != code.digest(for: "b"))
  }

  @Test("a token names its session, and nothing else is taken for one")
  func tokens() {
    let session = OpaqueToken.newSession(systemRandomness)
    let token = OpaqueToken(.refresh, session: session, random: systemRandomness)
    #expect(OpaqueToken(token.text) == token)
    #expect(OpaqueToken(token.text)?.session == session)
    for text in [
      "", "sfr_", token.text + "A", String(token.text.dropLast()), "xxx_" + token.text.dropFirst(4),
      String(repeating: "é", count: 69), String(repeating: "+", count: 69),
    ] {
      #expect(OpaqueToken(text) == nil, "\(text)")
    }
  }

  @Test("a device that asks too often waits five seconds longer each time")
  func pace() {
    var pace = DeviceGrant.Pace()
    #expect(asks(&pace, at: 100) == false)
    #expect(asks(&pace, at: 103) == false)
    #expect(asks(&pace, at: 105) == true)
    #expect(pace.interval == 8)
    #expect(asks(&pace, at: 112) == true)
    #expect(pace.interval == 13)
    #expect(asks(&pace, at: 125) == false)
    for now in 126...200 { _ = asks(&pace, at: Int64(now)) }
    #expect(pace.interval == 60)
  }

  @Test("a limit allows some at once, and then one in each interval")
  func limits() {
    var limit = Limit(burst: 3, interval: 60)
    for _ in 0..<3 { #expect(takes(&limit, "a", at: 1000) == nil) }
    #expect(takes(&limit, "a", at: 1000) == 60)
    #expect(takes(&limit, "b", at: 1000) == nil)
    #expect(takes(&limit, "a", at: 1059) == 1)
    #expect(takes(&limit, "a", at: 1060) == nil)
    #expect(takes(&limit, "a", at: 1060) == 60)
    limit.forget("a")
    #expect(takes(&limit, "a", at: 1060) == nil)
  }

  @Test("whoever comes with ever other names does not push out those who have to wait longest")
  func boundedLimit() {
    var limit = Limit(burst: 2, interval: 100, capacity: 10)
    for _ in 0..<2 { _ = limit.take("guesser", at: 0) }
    for number in 0..<1000 { _ = limit.take("\(number)", at: 0) }
    #expect(takes(&limit, "guesser", at: 0) != nil)
  }

  @Test("limits go by network: one IPv6 customer has 2^64 addresses")
  func networks() {
    #expect(network(of: "192.0.2.1") == "192.0.2.1")
    #expect(site(of: network(of: "192.0.2.1")) == nil && site(of: network(of: "::ffff:192.0.2.1")) == nil)
    #expect(site(of: network(of: "2001:db8:1:2::5")) == site(of: network(of: "2001:DB8:1:ffff::1")))
    #expect(site(of: network(of: "2001:db8:1:2::5")) != site(of: network(of: "2001:db8:2:2::5")))
    #expect(site(of: network(of: "2001:db8::5")) == site(of: network(of: "2001:db8:0:7::5")))
    #expect(network(of: "::ffff:192.0.2.1") == "192.0.2.1")
    #expect(network(of: "2001:db8:1:2::5") == network(of: "2001:DB8:1:2:ffff::1"))
    #expect(network(of: "2001:db8:1:2::5") != network(of: "2001:db8:1:3::5"))
    #expect(network(of: "2001:db8::5") == network(of: "2001:db8:0:0:1::"))
    #expect(network(of: "2001:0db8::5") == network(of: "2001:db8::6"))
    #expect(network(of: "fe80::1%eth0") == network(of: "fe80::2%eth1"))
    #expect(network(of: "::1") == network(of: "::1"))
  }

  @Test("an address for mail cannot bring a line of its own into a message")
  func addresses() {
    #expect(EmailAddress("Ada@Example.org")?.description == "ada@example.org")
    #expect(EmailAddress("a.b+c@localhost") != nil)
    for text in [
      "", "@", "a@", "@b", "a b@c", "a@b c", "a@b\n", "a@b\r\nBcc: x@y", "a@@b", "a,b@c", "<a@b>", "a@-b", "a@b-",
      "a@b..c",
      "\"a\"@b", "ä@b", "a@b\u{0}", String(repeating: "a", count: 65) + "@b",
      "a@" + String(repeating: "b.", count: 130) + "c",
    ] {
      #expect(EmailAddress(text) == nil, "\(text)")
    }
    let mail = Mail(to: EmailAddress("a@b")!, subject: "Your code: 000007", text: "one\ntwo")
    let message = Sendmail.message(mail, from: EmailAddress("fleet@c")!)
    #expect(message.hasPrefix("From: fleet@c\nTo: a@b\nSubject: Your code: 000007\n"))
    #expect(message.hasSuffix("\n\none\ntwo\n"))
  }

  @Test("a password is long enough, and not the address; one text has one hash, however it was typed")
  func passwords() throws {
    let email = EmailAddress("someone@example.org")!
    func weakness(_ text: String) -> Password.Weakness? {
      do throws(Password.Weakness) {
        _ = try Password(new: text, for: email)
        return nil
      } catch { return error }
    }
    #expect(weakness("1234567") == .length)
    #expect(weakness(String(repeating: "abcd", count: 65)) == .length)
    #expect(weakness("aaaaaaaaaaaaaaaa") == .obvious)
    #expect(weakness("Someone@example.org") == .obvious)
    #expect(weakness("correct horse") == nil)
    #expect(weakness("🐎🐎🐎🐎 🔋🔋🔋🔋") == nil)
    #expect(Password(attempt: "a\u{308}bcdefghi")?.bytes == Password(attempt: "äbcdefghi")?.bytes)
    #expect(Password(attempt: "") == nil)
    #expect(Password(attempt: String(repeating: "a", count: 1025)) == nil)
  }

  @Test("a hash is argon2id with 19 MiB and two passes; an unknown account's has the same parameters")
  func hashes() async throws {
    let hasher = PasswordHasher()
    let password = Password(attempt: "correct horse")!
    let hash = try await hasher.hash(password)
    #expect(hash.hasPrefix("$argon2id$v=19$m=19456,t=2,p=1$"))
    #expect(try await hasher.hash(password) != hash)
    #expect(try await hasher.verify(password, hash: hash))
    #expect(try await !hasher.verify(Password(attempt: "correct horsf")!, hash: hash))
    #expect(try await !hasher.verify(password, hash: nil))
    #expect(PasswordHasher.nobody.utf8.count == hash.utf8.count)
    #expect(PasswordHasher.nobody.hasPrefix("$argon2id$v=19$m=19456,t=2,p=1$"))
    // libsodium reads it, so that it does compute.
    #expect(PasswordHasher.needsNoOtherParameters(PasswordHasher.nobody))
  }

  @Test("two hash, 64 wait, and the others are told to come again")
  func crowd() async throws {
    let hasher = PasswordHasher()
    let password = Password(attempt: "correct horse")!
    let gate = DispatchSemaphore(value: 0)
    let crowd = (0..<66).map { _ in
      Task {
        try await hasher.perform { () -> Bool? in
          gate.wait()
          return true
        }
      }
    }
    while hasher.load != (2, 64) { try await Task.sleep(for: .milliseconds(1)) }
    await #expect(throws: PasswordHasher.Busy.self) { try await hasher.verify(password, hash: nil) }
    for _ in crowd { gate.signal() }
    for task in crowd { #expect(try await task.value) }
    #expect(try await !hasher.verify(password, hash: nil))
  }

  @Test("a page's texts are escaped")
  func escapes() {
    #expect(escaped("<b a=\"'&'\">") == "&lt;b a=&quot;&#39;&amp;&#39;&quot;&gt;")
  }
}
