import Bluetooth
import Domain
import Glibc
import Ranging
import SystemIO
import TestSupport
import Testing

@Suite("beacons that a controller is told to be")
struct AdvertiserTests {
  private typealias Command = VirtualController.Command

  private static let uuid = Domain.UUID("5f3c1c0e-7a0b-4f57-9a55-1f0f6c1b2a90")!
  private static let reset = Command(opcode: 0x0C03, parameters: [])

  private static func beacon(_ major: UInt16, minor: UInt16) -> IBeacon {
    IBeacon(uuid: uuid, major: major, minor: minor, measuredPower: -59)
  }

  private func data(_ major: UInt8, minor: UInt8) -> [UInt8] {
    [
      0x02, 0x01, 0x06, 0x1A, 0xFF, 0x4C, 0x00, 0x02, 0x15,
      0x5F, 0x3C, 0x1C, 0x0E, 0x7A, 0x0B, 0x4F, 0x57, 0x9A, 0x55, 0x1F, 0x0F, 0x6C, 0x1B, 0x2A, 0x90,
      0x00, major, 0x00, minor, 0xC5,
    ]
  }

  /// Runs `body` while a controller serves, and gives the commands that it got after those that initialise it.
  private func commands(
    _ character: VirtualController.Character = .init(), _ body: (_ spec: RadioSpec) throws -> Void
  ) throws -> [VirtualController.Command] {
    let folder = try TemporaryFolder()
    let controller = try VirtualController(folder, character)
    let thread = Thread { controller.serve() }
    try body(.h4(.unix(path: controller.path)))
    thread.join()
    #expect(controller.commands.first == Self.reset)
    return Array(controller.commands.dropFirst(5))
  }

  private let off = [
    Command(opcode: 0x2039, parameters: [0, 1, 0xE0, 0, 0, 0]), Command(opcode: 0x203C, parameters: [0xE0]),
    Command(opcode: 0x2039, parameters: [0, 1, 0xE1, 0, 0, 0]), Command(opcode: 0x203C, parameters: [0xE1]),
  ]

  private func parameters(set handle: UInt8) -> Command {
    Command(
      opcode: 0x2036,
      parameters: [
        handle, 0x10, 0x00, 160, 0, 0, 160, 0, 0, 0x07, 0x01, 0, 0, 0, 0, 0, 0, 0, 0, 0x7F, 1, 0, 1, 0, 0,
      ])
  }

  @Test("are sets of a Bluetooth 5 controller, each with an address of its own, and go when it is closed")
  func extended() throws {
    let commands = try commands { spec in
      let advertiser = try spec.advertise([Self.beacon(1, minor: 7), Self.beacon(2, minor: 8)])
      advertiser.close()
      advertiser.close()
    }
    try #require(commands.count == 16)
    #expect(commands[0] == Command(opcode: 0x203B, parameters: []))
    #expect(Array(commands[1...4]) == off)
    #expect(commands[5] == parameters(set: 0xE0))
    #expect(commands[7] == parameters(set: 0xE1))
    for (command, handle) in [(commands[6], 0xE0), (commands[8], 0xE1)] as [(Command, UInt8)] {
      #expect(command.opcode == 0x2035)
      #expect(command.parameters.count == 7 && command.parameters[0] == handle)
      // A static address: the two highest bits are set.
      #expect(command.parameters[6] & 0xC0 == 0xC0)
    }
    #expect(commands[6].parameters.dropFirst() != commands[8].parameters.dropFirst())
    #expect(commands[9] == Command(opcode: 0x2037, parameters: [0xE0, 3, 1, 30] + data(1, minor: 7)))
    #expect(commands[10] == Command(opcode: 0x2037, parameters: [0xE1, 3, 1, 30] + data(2, minor: 8)))
    #expect(commands[11] == Command(opcode: 0x2039, parameters: [1, 2, 0xE0, 0, 0, 0, 0xE1, 0, 0, 0]))
    #expect(Array(commands[12...15]) == off)
  }

  @Test("are one beacon of an older controller, in the commands that it knows")
  func legacy() throws {
    let commands = try commands(.init(extended: false)) { spec in
      let advertiser = try spec.advertise([Self.beacon(1, minor: 7)])
      try advertiser.update([Self.beacon(1, minor: 8)])
    }
    try #require(commands.count == 11)
    #expect(commands[0] == Command(opcode: 0x200A, parameters: [0]))
    #expect(commands[1].opcode == 0x2005 && commands[1].parameters.last.map { $0 & 0xC0 } == 0xC0)
    #expect(
      commands[2]
        == Command(opcode: 0x2006, parameters: [160, 0, 160, 0, 0x03, 0x01, 0, 0, 0, 0, 0, 0, 0, 0x07, 0x00]))
    #expect(commands[3] == Command(opcode: 0x2008, parameters: [30] + data(1, minor: 7) + [0]))
    #expect(commands[4] == Command(opcode: 0x200A, parameters: [1]))
    #expect(commands[5..<8] == commands[0..<3], "with the same address")
    #expect(commands[8] == Command(opcode: 0x2008, parameters: [30] + data(1, minor: 8) + [0]))
    #expect(commands[9] == commands[4])
    // Going out of scope is as good as closing.
    #expect(commands[10] == commands[0])
  }

  @Test("get other data without a pause")
  func update() throws {
    let commands = try commands { spec in
      let advertiser = try spec.advertise([Self.beacon(1, minor: 7)])
      try advertiser.update([Self.beacon(1, minor: 8)])
    }
    let first = try #require(commands.firstIndex { $0.opcode == 0x2039 && $0.parameters[0] == 1 })
    #expect(
      commands[(first + 1)...].prefix(2) == [
        Command(opcode: 0x2037, parameters: [0xE0, 3, 1, 30] + data(1, minor: 8)),
        Command(opcode: 0x2039, parameters: [1, 1, 0xE0, 0, 0, 0]),
      ])
  }

  @Test("are begun anew when somebody else has removed them")
  func lostSets() throws {
    let commands = try commands(.init(meddling: .reset)) { spec in
      let advertiser = try spec.advertise([Self.beacon(1, minor: 7)])
      try advertiser.update([Self.beacon(1, minor: 8)])
    }
    #expect(commands.count { $0 == parameters(set: 0xE0) } == 2)
    let last = try #require(commands.lastIndex { $0.opcode == 0x2037 })
    #expect(commands[last].parameters == [0xE0, 3, 1, 30] + data(1, minor: 8))
    #expect(commands[last + 1] == Command(opcode: 0x2039, parameters: [1, 1, 0xE0, 0, 0, 0]))
  }

  @Test(
    "are nothing that one can connect to, whatever somebody else does", arguments: VirtualController.Meddling.allCases)
  func meddling(meddling: VirtualController.Meddling) throws {
    let commands = try commands(.init(extended: false, meddling: meddling)) { spec in
      let advertiser = try spec.advertise([Self.beacon(1, minor: 7)])
      try advertiser.update([Self.beacon(1, minor: 8)])
    }
    // Parameters are taken while nothing is advertised, and without them it is connectable.
    #expect(commands.dropLast().suffix(5).map(\.opcode) == [0x200A, 0x2005, 0x2006, 0x2008, 0x200A])
  }

  @Test("stay on when the controller refuses to enable what is enabled")
  func enabledAlready() throws {
    let commands = try commands(.init(refusesEnablingTwice: true)) { spec in
      let advertiser = try spec.advertise([Self.beacon(1, minor: 7)])
      try advertiser.update([Self.beacon(1, minor: 8)])
      try advertiser.update([Self.beacon(1, minor: 9)])
    }
    #expect(commands.count { $0.opcode == 0x2036 } == 1)
  }

  @Test("are no more than the controller can be", arguments: [true, false])
  func tooMany(extended: Bool) throws {
    let commands = try commands(.init(extended: extended, advertisingSets: 1)) { spec in
      #expect(throws: RadioError.tooFewSets(radio: "\(spec)", sets: 1, beacons: 2)) {
        try spec.advertise([Self.beacon(1, minor: 7), Self.beacon(2, minor: 8)])
      }
    }
    #expect(commands.count == (extended ? 1 : 0))
  }

  @Test("go when an error or a signal came in between", arguments: [0x2037, 0x2039])
  func cleansUp(opcode: UInt16) throws {
    let commands = try commands(.init(refuses: [opcode: 0x0C])) { spec in
      #expect(throws: RadioError.self) { try spec.advertise([Self.beacon(1, minor: 7)]) }
    }
    #expect(commands.last == (opcode == 0x2039 ? off[3] : commands.last))
    let interrupted = try self.commands(.init()) { spec in
      let isOnAir = try Wakeup()
      try Thread.withSignal(SIGTERM, after: isOnAir) { interruption in
        let advertiser = try spec.advertise([Self.beacon(1, minor: 7)], interruption: interruption)
        isOnAir.signal()
        _ = try waitReadable([interruption.number], until: nil)
        #expect(throws: RadioError.interrupted) { try advertiser.update([Self.beacon(1, minor: 8)]) }
      }
    }
    #expect(interrupted.suffix(4) == off)
  }

  @Test("are lost with their controller, which shows at once")
  func lost() throws {
    _ = try commands(.init(hangsUpAfter: 0x2039)) { spec in
      let advertiser = try spec.advertise([Self.beacon(1, minor: 7)])
      _ = try waitReadable([advertiser.descriptor], until: nil)
      #expect(throws: RadioError.lost(radio: "\(spec)", reason: "the controller closed the connection")) {
        try advertiser.check()
      }
    }
  }

  @Test("cannot be sent by a capture")
  func capture() {
    #expect(throws: RadioError.cannotAdvertise(radio: "btsnoop:x")) {
      try RadioSpec.btsnoop("x").advertise([Self.beacon(1, minor: 7)])
    }
  }
}
