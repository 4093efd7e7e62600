// What swift-argument-parser 1.8 takes from Foundation's essentials: a protocol for errors, and an encoder for its hidden
// option --experimental-dump-help, which prints an empty line without one. `make` compiles the programs for use against
// this module: the real one would add 4 MB and 2,000 protocol conformances, which the runtime searches at each start.

public protocol LocalizedError: Error {
  var errorDescription: String? { get }
}

public struct Data {}

extension String {
  public struct Encoding: Sendable {
    public static let utf8 = Encoding()
  }

  public init?(data: Data, encoding: Encoding) { return nil }
}

public final class JSONEncoder {
  public struct OutputFormatting: OptionSet, Sendable {
    public let rawValue: UInt
    public init(rawValue: UInt) { self.rawValue = rawValue }
    public static let prettyPrinted = OutputFormatting(rawValue: 1)
    public static let sortedKeys = OutputFormatting(rawValue: 2)
  }

  public var outputFormatting: OutputFormatting = []

  public init() {}

  public func encode(_ value: some Encodable) throws -> Data { throw Missing() }

  private struct Missing: Error {}
}
