import Domain
import Traffic
import TrafficBridge

extension BridgeServer {
  /// A connected client or publisher.
  final class Peer {
    let socket: OpaquePointer
    let place: BridgeRole.Place
    var client: Bridge.Client
    var isEstablished = false
    /// One side has announced the end of the connection: no frame is sent after that (RFC 6455 5.5.1).
    var isEnding = false
    /// An authority has revoked its certificate.
    var isRevoked = false
    /// The received part of a message.
    var message: [UInt8] = []
    var lastMessage: Double
    /// When the library was last told that the peer is alive.
    var lastSign: Double
    /// Seconds.
    var frames = Allowance(burst: 100, interval: 1 / 50)
    /// Seconds.
    var bytes: Allowance
    /// The bytes counted by the kernel, which include control frames and TLS.
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
      bytes = Allowance(burst: 2 * most, interval: 1 / most)
      mostReceived = UInt64(2 * most * BridgeServer.pause)
    }
  }
}
