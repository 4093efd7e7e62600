import Domain
import Encoding

extension TOMLTable {
  /// The value of a key that names a computer: a host name or an address, without a scheme, brackets or a port.
  package func host(_ key: Key, port: String) throws(ConfigurationError) -> String {
    let host = try required(key, .text)
    if let correct = Self.corrected(host, key, port: port) {
      throw error(
        key, "expected a host name or an address, found \(TOMLText.quoted(host))", hint: "write \(correct)")
    }
    return host
  }

  /// What was probably meant; nil for a text without a flaw.
  private static func corrected(_ text: String, _ key: Key, port: String) -> String? {
    // An IPv6 address has two colons and more, and perhaps a zone.
    let address = text.prefix { $0 != "%" }
    let isAddress = address.filter { $0 == ":" }.count > 1 && address.allSatisfy { $0.isHexDigit || ":.".contains($0) }
    let isFlawed = text.contains { "/[]@".contains($0) || $0.isWhitespace } || text.contains(":") && !isAddress
    guard isFlawed || text.isEmpty else { return nil }
    var plain = text.filter { !$0.isWhitespace }[...]
    if let scheme = plain.range(ofBytes: "://") { plain = plain[scheme.upperBound...] }
    plain = plain.prefix { $0 != "/" }
    let name = TOMLText.key(key.rawValue)
    func line(_ host: String) -> String { "\(name) = \(TOMLText.quoted(host))" }
    if let place = try? HostPort(plain, usual: nil) { return "\(line(place.host)) and \(port) = \(place.port)" }
    if let place = try? HostPort(plain, usual: 1) { return line(place.host) }
    return "\(line("broker.example")), with the port in \(port)"
  }
}
