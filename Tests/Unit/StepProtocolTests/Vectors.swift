import Encoding
import Foundation
import TestSupport

/// Files of values that others published or computed; each says where it comes from.
enum Vectors {
  static let joseHPKE4 = load("Fixtures/jose-hpke-4.json")
  static let rfc8037 = load("Fixtures/rfc8037.json")
  static let rfc4493 = load("Fixtures/rfc4493.json")
  static let an12196 = load("Fixtures/an12196.json")
  /// The worked example of PROTOCOL.md, made by a Python program that has nothing in common with this code.
  static let example = load("Peers/example.json")

  private static func load(_ path: String) -> JSON {
    try! Repository.json("Tests/\(path)")
  }
}

extension JSON {
  /// The bytes of a member in hexadecimal.
  func hexadecimal(_ name: String) -> [UInt8] {
    let digits = Array(self[name]!.string!.utf8).map { UInt8(String(UnicodeScalar($0)), radix: 16)! }
    return stride(from: 0, to: digits.count, by: 2).map { digits[$0] << 4 | digits[$0 + 1] }
  }

  func text(_ name: String) -> String { self[name]!.string! }
}
