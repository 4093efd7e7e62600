import Crypto
import Encoding
import Testing

@testable import Login

private func uses(_ used: inout UsedProofs, _ proof: DPoPProof, at now: Int64) -> Bool? { used.use(proof, at: now) }

@Suite("DPoP proofs (RFC 9449)")
struct DPoPProofTests {
  let device = Device()
  let now: Int64 = 1_800_000_000
  let target = "https://fleet.example/oauth/token"

  func error(_ text: String, accessToken: String? = nil, notBefore: Int64 = 0) -> ProofError? {
    do throws(ProofError) {
      _ = try DPoPProof(
        parsing: text, method: "POST", target: target, now: now, notBefore: notBefore, accessToken: accessToken)
      return nil
    } catch { return error }
  }

  func malformed(_ text: String) -> Bool { if case .malformed = error(text) { true } else { false } }

  @Test("a proof of this request by this key counts, whichever way the address is written")
  func valid() throws {
    let proof = try DPoPProof(
      parsing: device.proof(device.claims(at: now)), method: "POST", target: target, now: now, accessToken: nil)
    let canonical = #"{"crv":"Ed25519","kty":"OKP","x":"\#(device.jwk["x"]!.string!)"}"#
    #expect(proof.thumbprint == Base64URL.encode(SHA256.hash(data: Array(canonical.utf8))))
    for address in [
      "https://fleet.example:443/oauth/token", "HTTPS://Fleet.Example/oauth/token", target + "?a=b", target + "#f",
    ] {
      #expect(error(device.proof(device.claims("POST", address, at: now))) == nil, "\(address)")
    }
  }

  @Test("other members of header and key do not count: requests_oauth2client sends an alg in the key")
  func extraMembers() {
    let jwk = device.jwk.with("alg", "EdDSA").with("kid", "k")
    #expect(
      error(device.proof(device.claims(at: now), header: ["typ": "dpop+jwt", "alg": "EdDSA", "jwk": jwk])) == nil)
    #expect(
      error(device.proof(device.claims(at: now), header: ["typ": "dpop+jwt", "alg": "Ed25519", "jwk": device.jwk]))
        == nil)
  }

  @Test("RFC 9449's own example is refused: its algorithm is another")
  func otherAlgorithm() {
    #expect(
      malformed(
        "eyJ0eXAiOiJkcG9wK2p3dCIsImFsZyI6IkVTMjU2IiwiandrIjp7Imt0eSI6IkVDIiwieCI6Imw4dEZyaHgtMzR0VjNoUklDUkRZOXpDa0RscEJo"
          + "RjQyVVFVZldWQVdCRnMiLCJ5IjoiOVZFNGpmX09rX282NHpiVFRsY3VOSmFqSG10NnY5VERWclUwQ2R2R1JEQSIsImNydiI6IlAtMjU2In19"
          + ".eyJqdGkiOiItQndDM0VTYzZhY2MybFRjIiwiaHRtIjoiUE9TVCIsImh0dSI6Imh0dHBzOi8vc2VydmVyLmV4YW1wbGUuY29tL3Rva2VuIiwia"
          + "WF0IjoxNTYyMjYyNjE2fQ.2-GxA6T8lP4vfrg8v-FdWP0A0zdrj8igiMLvqRMUvwnQg4PtFLbdLXiOSsX0x7NVY-FNyJK70nfbV37xRZT3Lg"
      ))
  }

  @Test("a header that is not exactly a proof's is refused", arguments: ["typ", "alg", "jwk"])
  func headers(name: String) {
    let header: JSON = ["typ": "dpop+jwt", "alg": "EdDSA", "jwk": device.jwk]
    let wrong: [JSON?] = [nil, .null, "none", "JWT", "HS256", "dpop+jwt ", [], device.jwk.with("crv", "X25519")]
    for value in wrong {
      #expect(
        malformed(device.proof(device.claims(at: now), header: header.with(name, value))), "\(name) \(value as Any)")
    }
  }

  @Test("a proof that has its private key in it, or extensions that must be understood, is refused")
  func dangerousHeaders() {
    let secret = device.jwk.with("d", .string(Base64URL.encode(device.key.rawRepresentation)))
    #expect(
      malformed(device.proof(device.claims(at: now), header: ["typ": "dpop+jwt", "alg": "EdDSA", "jwk": secret])))
    #expect(
      malformed(
        device.proof(
          device.claims(at: now), header: ["typ": "dpop+jwt", "alg": "EdDSA", "jwk": device.jwk, "crit": ["x"], "x": 1])
      ))
  }

  @Test("a key of low order, for which anybody can sign, is refused")
  func lowOrder() {
    let point = [UInt8(1)] + [UInt8](repeating: 0, count: 31)
    let jwk: JSON = ["kty": "OKP", "crv": "Ed25519", "x": .string(Base64URL.encode(point))]
    #expect(malformed(device.proof(device.claims(at: now), header: ["typ": "dpop+jwt", "alg": "EdDSA", "jwk": jwk])))
  }

  @Test("a claim that is missing or of another kind is refused", arguments: ["jti", "htm", "htu", "iat"])
  func claims(name: String) {
    for value in [nil, .null, true, [], "", .string(String(repeating: "a", count: 5000))] as [JSON?] {
      #expect(error(device.proof(device.claims(at: now).with(name, value))) != nil, "\(name) \(value as Any)")
    }
    #expect(error(device.proof(device.claims(at: now).with("iat", .number(.infinity)))) != nil)
    #expect(error(device.proof(device.claims(at: now).with("iat", .number(Double(now) + 0.5)))) == nil)
  }

  @Test("a proof of another method, address or token is refused")
  func otherRequest() {
    #expect(error(device.proof(device.claims("GET", at: now))) == .otherMethod)
    #expect(error(device.proof(device.claims("post", at: now))) == .otherMethod)
    for address in [
      "https://fleet.example/oauth/revoke", "http://fleet.example/oauth/token",
      "https://fleet.example:8443/oauth/token",
      "https://fleet.example.evil/oauth/token", "https://fleet.example/oauth/token/",
      "https://fleet.example//oauth/token",
      "https://fleet.example/OAuth/token",
    ] {
      #expect(error(device.proof(device.claims("POST", address, at: now))) == .otherAddress, "\(address)")
    }
    for address in ["/oauth/token", "fleet.example/oauth/token", "https://u@fleet.example/oauth/token", "ftp://x/y"] {
      #expect(malformed(device.proof(device.claims("POST", address, at: now))), "\(address)")
    }
    let token = "sfa_x"
    #expect(error(device.proof(device.claims(at: now, accessToken: token)), accessToken: token) == nil)
    #expect(error(device.proof(device.claims(at: now, accessToken: "sfa_y")), accessToken: token) == .otherToken)
    #expect(error(device.proof(device.claims(at: now)), accessToken: token) == .otherToken)
  }

  @Test("a proof counts for two minutes, and from a clock that is a minute ahead")
  func times() {
    #expect(error(device.proof(device.claims(at: now - 120))) == nil)
    #expect(error(device.proof(device.claims(at: now + 60))) == nil)
    #expect(error(device.proof(device.claims(at: now - 121))) == .clock(-121))
    #expect(error(device.proof(device.claims(at: now + 61))) == .clock(61))
    // What was made before the server started may have been used before.
    #expect(error(device.proof(device.claims(at: now - 3)), notBefore: now - 2) == .clock(-3))
  }

  @Test("a changed proof is refused, wherever it was changed")
  func signatures() {
    let text = Array(device.proof(device.claims(at: now)).utf8)
    for index in stride(from: 0, to: text.count, by: 3) {
      var changed = text
      changed[index] = changed[index] == UInt8(ascii: "A") ? UInt8(ascii: "B") : UInt8(ascii: "A")
      #expect(error(String(decoding: changed, as: UTF8.self)) != nil, "byte \(index)")
    }
    let other = Device()
    #expect(
      error(other.proof(device.claims(at: now), header: ["typ": "dpop+jwt", "alg": "EdDSA", "jwk": device.jwk]))
        == .badSignature)
    for text in ["", ".", "..", "a.b.c", "....", String(repeating: "A", count: 5000)] {
      #expect(malformed(text), "\(text)")
    }
  }

  @Test("two claims of one name are refused: two readers could read two proofs")
  func doubledClaim() throws {
    let header = Base64URL.encode((["typ": "dpop+jwt", "alg": "EdDSA", "jwk": device.jwk] as JSON).bytes)
    let claims = String(device.claims(at: now).text.dropLast()) + #","htu":"https://fleet.example/"}"#
    let input = header + "." + Base64URL.encode(Array(claims.utf8))
    #expect(malformed(input + "." + Base64URL.encode(try device.key.signature(for: Array(input.utf8)))))
  }

  @Test("a proof is used once, and by one key: another may have the same jti")
  func usedOnce() throws {
    var used = UsedProofs()
    func proof(_ device: Device, _ id: String, at time: Int64) throws -> DPoPProof {
      try DPoPProof(
        parsing: device.proof(device.claims(id: id, at: time)), method: "POST", target: target, now: time,
        accessToken: nil)
    }
    let first = try proof(device, "one", at: now)
    #expect(uses(&used, first, at: now) == true)
    #expect(uses(&used, first, at: now) == false)
    #expect(uses(&used, try proof(Device(), "one", at: now), at: now) == true)
    #expect(uses(&used, try proof(device, "two", at: now), at: now) == true)
    // As long as it could be used, it is remembered, however many others come.
    for second in stride(from: Int64(1), through: 180, by: 1) {
      #expect(uses(&used, try proof(device, "at \(second)", at: now + second), at: now + second) == true)
      #expect(uses(&used, first, at: now + second) == false)
    }
    // Later nothing of it is left.
    #expect(uses(&used, try proof(device, "later", at: now + 2000), at: now + 2000) == true)
    #expect(uses(&used, first, at: now + 2000) == true)
  }

  @Test("where there is no room to remember a proof, none is taken")
  func fullMemory() throws {
    var used = UsedProofs(capacity: 2)
    for (id, expected) in [("a", true), ("b", true), ("c", nil)] as [(String, Bool?)] {
      let proof = try DPoPProof(
        parsing: device.proof(device.claims(id: id, at: now)), method: "POST", target: target, now: now,
        accessToken: nil)
      #expect(uses(&used, proof, at: now) == expected)
    }
  }
}
