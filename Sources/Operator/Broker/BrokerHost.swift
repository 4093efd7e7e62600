import Encoding
import Glibc

/// The name or the address at which riders reach a vehicle's broker.
package struct BrokerHost: Hashable, Sendable, CustomStringConvertible {
  package let description: String
  private let kind: Kind

  private enum Kind {
    case address, name
  }

  package static let localhost = BrokerHost("localhost")!

  /// An IPv4 or IPv6 address, or a host name (RFC 1123 2.1: labels of letters, digits and `-`; at most 253 bytes).
  /// Refuses the addresses that mean "any": nobody can connect to them.
  ///
  /// The text needs no quotes in a certificate's alternative names and in mosquitto.conf.
  package init?(_ text: String) {
    var address = in6_addr()
    if inet_pton(AF_INET, text, &address) == 1 || inet_pton(AF_INET6, text, &address) == 1 {
      guard withUnsafeBytes(of: address, { $0.contains { $0 != 0 } }) else { return nil }
      kind = .address
    } else {
      kind = .name
      let labels = text.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
      let hyphen = UInt8(ascii: "-")
      let isName = labels.allSatisfy { label in
        (1...63).contains(label.count) && label.first != hyphen && label.last != hyphen
          && label.allSatisfy { $0.isASCIIAlphanumeric || $0 == hyphen }
      }
      // A text like `10.0.0.256` is neither an address nor a name: a top-level domain is not a number.
      let looksLikeAddress = labels.last?.allSatisfy(\.isASCIIDigit) ?? true
      guard isName, !looksLikeAddress, text.utf8.count <= 253 else { return nil }
    }
    description = text
  }

  /// Whether it is the computer itself by its name: `localhost`.
  var isLocalName: Bool { kind == .name && description.lowercased() == "localhost" }

  /// The address if it is the computer itself: then the broker accepts only local connections. Nil for other computers.
  var loopbackAddress: String? {
    switch kind {
    case .address: description == "::1" || description.hasPrefix("127.") ? description : nil
    case .name: isLocalName ? "127.0.0.1" : nil
    }
  }

  /// The value of a subjectAltName in the notation of x509v3_config(5).
  ///
  /// It always includes the local names, so that the controller can reach its broker by them even if the network fails
  /// (`host` in stepd.toml).
  var alternativeNames: String {
    var names = ["DNS:localhost", "IP:127.0.0.1", "IP:::1"]
    let name = kind == .address ? "IP:\(description)" : "DNS:\(description)"
    if !names.contains(name) { names.insert(name, at: 0) }
    return names.joined(separator: ",")
  }
}
