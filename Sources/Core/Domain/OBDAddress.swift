/// Where an adapter for a vehicle's diagnosis (OBD-II) is.
package enum OBDAddress: Hashable, Sendable {
  /// A serial line, and its speed in baud.
  case serial(path: String, speed: Int)
  /// An adapter in a network, or one that another program serves.
  case network(HostPort)

  /// The speed of an ELM327 that nobody has set otherwise (ELM327 data sheet, PP 0C).
  package static let usualSpeed = 38_400
  private static let speeds = [9600, 19_200, 38_400, 57_600, 115_200, 230_400, 460_800]

  /// Reads `/dev/ttyUSB0`, `/dev/ttyUSB0:115200` or `tcp:HOST:PORT`; nil for another text.
  package init?(_ text: Substring) {
    if text.hasPrefix("tcp:") {
      guard let address = try? HostPort(text.dropFirst(4), usual: nil) else { return nil }
      self = .network(address)
      return
    }
    var (path, speed) = (text, Self.usualSpeed)
    if let colon = text.lastIndex(of: ":") {
      let digits = text[text.index(after: colon)...]
      guard let number = Int(digits), "\(number)" == digits, Self.speeds.contains(number) else { return nil }
      (path, speed) = (text[..<colon], number)
    }
    guard path.hasPrefix("/"), !path.hasSuffix("/") else { return nil }
    self = .serial(path: String(path), speed: speed)
  }

  /// As it is read.
  package var text: String {
    switch self {
    case .serial(let path, Self.usualSpeed): path
    case .serial(let path, let speed): "\(path):\(speed)"
    case .network(let address): "tcp:\(address)"
    }
  }
}
