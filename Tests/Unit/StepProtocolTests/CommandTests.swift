import Domain
import Testing

@testable import StepProtocol

@Suite("Commands") struct CommandTests {
  static let vehicle = UUID.random()
  static let left = StepID("left")!
  static let operatorKey = SigningKey()
  static let device = SigningKey()
  static let controller = DecryptionKey()

  static func command(_ request: Command.Request, rider: String = "anna") -> Command {
    let token = Token(
      issuer: "operator", subject: rider, vehicle: vehicle, steps: [left], notBefore: 0, expires: 1,
      device: device.verificationKey)
    return Command(vehicle: vehicle, step: left, request: request, token: token.signed(by: operatorKey))
  }

  static func move(_ target: Command.Move.Target, _ proof: Proof) -> Command.Request {
    let bytes = [UInt8](repeating: 1, count: 16)
    return .move(.init(target: target, epoch: bytes, challenge: bytes, deadline: 5_000, proof: proof, proofTime: 0))
  }

  static func beacons(_ count: UInt16) -> Proof {
    .beacon(
      zone: .immediate, isLocated: true,
      beacons: (0..<count).map {
        HeardBeacon(major: 50_000 + $0, minor: 50_000, rssi: -100, measuredPower: -59, packets: 100)
      })
  }

  func size(_ request: Command.Request, rider: String = "anna") -> Int {
    Self.command(request, rider: rider).sealed(by: Self.device, to: Self.controller.encryptionKey).bytes.count
  }

  @Test("the size of a command tells neither what is asked nor who asks, where, or how presence was found")
  func sizes() {
    let requests: [Command.Request] = [
      .status, .stop(epoch: [UInt8](repeating: 1, count: 16)), Self.move(.open, Self.beacons(1)),
      Self.move(.close, Self.beacons(1)), Self.move(.open, Self.beacons(8)),
      Self.move(.open, .code(content: String(repeating: "x", count: 100))),
    ]
    let riders = ["a", String(repeating: "a", count: 128)]
    let sizes = Set(requests.flatMap { request in riders.map { size(request, rider: $0) } })
    #expect(sizes == [4042])
    #expect(size(Self.move(.open, .code(content: String(repeating: "\u{1}", count: 512)))) == 7683)
  }

  @Test("a stop is read back, with the epoch and nothing of a move")
  func stop() throws {
    let epoch = [UInt8](repeating: 9, count: 16)
    let command = Self.command(.stop(epoch: epoch))
    let sealed = command.sealed(by: Self.device, to: Self.controller.encryptionKey)
    guard
      case .command(let read, _, nil) = ReceivedCommand(
        sealed.bytes, controller: Self.controller, operatorKey: Self.operatorKey.verificationKey)
    else {
      Issue.record("not read")
      return
    }
    #expect(read == command)
    #expect(read.request == .stop(epoch: epoch))
  }
}
