import Domain
import Glibc
import StepController
import StepProtocol
import SystemIO
import TestSupport

let left = StepID("left")!
let right = StepID("right")!
typealias UUID = Domain.UUID

/// The next message, or nil after a minute, which nothing here takes.
func next<M>(_ mailbox: Mailbox<M>, within patience: Duration = .seconds(60)) -> M? {
  _ = try? waitReadable([mailbox.descriptor], until: .now + patience)
  return mailbox.take()
}

/// A socket that datagrams come to, as systemd and its journal have one.
final class PlayedSocket {
  private let socket: Descriptor
  private let folder = try! TemporaryFolder()
  let name: String

  init(isAbstract: Bool) throws {
    name = isAbstract ? "@stepctl-test-\(UInt64.random(in: 0 ... .max))" : folder.path + "/socket"
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    withUnsafeMutableBytes(of: &address.sun_path) { [name] in
      $0.copyBytes(from: name.utf8)
      if isAbstract { $0[0] = 0 }
    }
    let size = socklen_t(2 + name.utf8.count)
    socket = Descriptor(
      adopting: try check("create a socket") { Glibc.socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue), 0) })
    let number = socket.number
    _ = try check("bind") {
      withUnsafeBytes(of: address) { bind(number, $0.assumingMemoryBound(to: sockaddr.self).baseAddress, size) }
    }
  }

  /// Nil when nothing comes in time.
  func next(within patience: Duration = .seconds(60)) throws -> String? {
    guard try waitReadable([socket.number], until: .now + patience)[0] else { return nil }
    var bytes = [UInt8](repeating: 0, count: 65536)
    let count = recv(socket.number, &bytes, bytes.count, 0)
    return String(decoding: bytes.prefix(max(count, 0)), as: UTF8.self)
  }
}
