import Traffic

extension BridgeServer {
  /// Whoever is connected.
  final class Peer {
    let socket: OpaquePointer
    let place: BridgeRole.Place
    var client: Bridge.Client
    var isEstablished = false
    /// One side has said that it ends the connection: no frame goes out after that (RFC 6455 5.5.1).
    var isEnding = false
    /// An authority has taken its certificate back.
    var isRevoked = false
    /// What has come of a message.
    var message: [UInt8] = []
    var lastMessage: Double
    /// When the library was told that it lives.
    var lastSign: Double
    var frames = RateLimit(perSecond: 50, burst: 100)
    var bytes: RateLimit
    /// The same as the kernel counts it: control frames and TLS are in there, too.
    var received: UInt64 = 0
    let mostReceived: UInt64

    init(_ socket: OpaquePointer, _ place: BridgeRole.Place, now: Double) {
      self.socket = socket
      self.place = place
      lastMessage = now
      lastSign = now
      let most: Double
      switch place {
      case .client(let allowed):
        client = Bridge.Client(allowed: allowed)
        most = 10 * Double(ClientLocation.longest)
      case .publisher:
        client = Bridge.Client(allowed: [])
        // 2,000 objects of 200 bytes, 25 times a second.
        most = 10e6
      }
      bytes = RateLimit(perSecond: most, burst: 2 * most)
      mostReceived = UInt64(2 * most * BridgeServer.pause)
    }
  }
}
