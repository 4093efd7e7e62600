import Bluetooth
import Domain
import Glibc
import Ranging
import SystemIO
import TestSupport
import Testing

@Suite("radios at the other end of a stream")
struct H4RadioTests {
  private typealias Command = VirtualController.Command

  private static let reset = Command(opcode: 0x0C03, parameters: [])
  private static let scanOff = Command(opcode: 0x2042, parameters: [0, 0, 0, 0, 0, 0])
  private static let scanOn = Command(opcode: 0x2042, parameters: [1, 0, 0, 0, 0, 0])
  private static let beacons = [Packet.extendedReport(minor: 1), Packet.answer, Packet.extendedReport(minor: 2)]

  /// Runs `body` while a controller serves, and gives the commands that the controller got in all.
  private func commands(
    _ character: VirtualController.Character = .init(), _ body: (_ spec: RadioSpec) throws -> Void
  ) throws -> [VirtualController.Command] {
    let folder = try TemporaryFolder()
    let controller = try VirtualController(folder, character)
    let thread = Thread { controller.serve() }
    try body(.h4(.unix(path: controller.path)))
    thread.join()
    return controller.commands
  }

  private func hear(_ radio: any Radio, _ count: Int) throws -> [UInt16?] {
    try (0..<count).map { _ in
      guard case .heard(let advertisement) = try radio.next(until: nil) else { return nil }
      return advertisement.iBeacon?.minor
    }
  }

  @Test("initialise a Bluetooth 5 controller, scan passively without filtering duplicates, and stop")
  func extended() throws {
    let commands = try commands(.init(sends: Self.beacons)) { spec in
      let radio = try spec.open()
      #expect(try hear(radio, 2) == [1, 2])
      radio.close()
      radio.close()
    }
    #expect(
      commands == [
        Self.reset,
        Command(opcode: 0x1003, parameters: []),
        Command(opcode: 0x2003, parameters: []),
        Command(opcode: 0x0C01, parameters: [0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x1F, 0x00, 0x20]),
        Command(opcode: 0x2001, parameters: [0x00, 0x10, 0, 0, 0, 0, 0, 0]),
        Self.scanOff,
        Command(opcode: 0x2041, parameters: [0x00, 0x00, 0x01, 0x00, 0x60, 0x00, 0x60, 0x00]),
        Self.scanOn,
        Self.scanOff,
      ])
  }

  @Test("tell beacons whose makers put bytes behind the power")
  func bytesBehind() throws {
    let beacons = (0...5).map { Packet.extendedReport(minor: UInt8($0), behind: $0) }
    _ = try commands(.init(sends: beacons)) { spec in
      let radio = try spec.open()
      #expect(try hear(radio, 6) == [0, 1, 2, 3, 4, 5])
    }
  }

  @Test("speak to an older controller in the commands that it knows")
  func legacy() throws {
    let commands = try commands(.init(extended: false, sends: [Packet.reports(minors: [1, 2])])) { spec in
      let radio = try spec.open()
      #expect(try hear(radio, 2) == [1, 2])
    }
    #expect(
      commands.dropFirst(4) == [
        Command(opcode: 0x2001, parameters: [0x02, 0x00, 0, 0, 0, 0, 0, 0]),
        Command(opcode: 0x200C, parameters: [0x00, 0x00]),
        Command(opcode: 0x200B, parameters: [0x00, 0x60, 0x00, 0x60, 0x00, 0x00, 0x00]),
        Command(opcode: 0x200C, parameters: [0x01, 0x00]),
        // Going out of scope is as good as closing.
        Command(opcode: 0x200C, parameters: [0x00, 0x00]),
      ])
  }

  @Test("stamp what they hear with the wall clock, and tell a deadline on time")
  func clock() throws {
    _ = try commands(.init(sends: [Packet.extendedReport()])) { spec in
      let before = WallClock.microseconds
      let radio = try spec.open()
      #expect((before...WallClock.microseconds).contains(radio.start.microseconds))
      guard case .heard(let advertisement) = try radio.next(until: nil) else { return #expect(Bool(false)) }
      #expect((radio.start.microseconds...WallClock.microseconds).contains(advertisement.time.microseconds))
      for tick in 1...3 as ClosedRange<Int64> {
        let deadline = UnixTime(microseconds: radio.start.microseconds + tick * 50_000)
        guard case .deadline(let time) = try radio.next(until: deadline) else { return #expect(Bool(false)) }
        #expect(time >= deadline)
        #expect(WallClock.microseconds >= deadline.microseconds)
      }
      // A deadline that has passed is told at once.
      guard case .deadline = try radio.next(until: radio.start) else { return #expect(Bool(false)) }
    }
  }

  @Test("tell a deadline before what was heard after it")
  func late() throws {
    _ = try commands(.init(extended: false, sends: [Packet.reports(minors: [1, 2])])) { spec in
      let radio = try spec.open()
      #expect(try hear(radio, 1) == [1])
      // The other is there already.
      guard case .deadline = try radio.next(until: radio.start) else { return #expect(Bool(false)) }
      #expect(try hear(radio, 1) == [2])
    }
  }

  @Test("wait until the controller takes another command")
  func credits() throws {
    _ = try commands(.init(givesCreditsLate: true, sends: Self.beacons)) { spec in
      let radio = try spec.open()
      #expect(try hear(radio, 2) == [1, 2])
    }
  }

  @Test("are refused with the command that the controller refused")
  func refused() throws {
    let commands = try commands(.init(refuses: [0x2041: 0x0C])) { spec in
      #expect(
        throws: RadioError.refused(radio: "\(spec)", command: "LE Set Extended Scan Parameters", status: 0x0C)
      ) { try spec.open() }
    }
    #expect(commands.last?.opcode == 0x2041)
  }

  @Test("stop the scan when they do not know whether it has begun")
  func enableRefused() throws {
    let hasIgnored = try Wakeup()
    let commands = try commands(.init(ignores: [0x2042], hasIgnored: hasIgnored)) { spec in
      try Thread.withSignal(SIGINT, after: hasIgnored) { interruption in
        #expect(throws: RadioError.interrupted) { try spec.open(interruption: interruption) }
      }
    }
    // It was not answered even the first time, before anything was begun.
    #expect(commands.last == Self.scanOff)
    let refusing = try self.commands(.init(refuses: [0x2042: 0x0C])) { spec in
      #expect(
        throws: RadioError.refused(radio: "\(spec)", command: "LE Set Extended Scan Enable", status: 0x0C)
      ) { try spec.open() }
    }
    #expect(refusing.suffix(2) == [Self.scanOn, Self.scanOff])
  }

  @Test("stop the scan after a signal", arguments: [SIGINT, SIGTERM])
  func signals(signal: Int32) throws {
    let commands = try commands(.init(sends: Self.beacons)) { spec in
      let isOpen = try Wakeup()
      try Thread.withSignal(signal, after: isOpen) { interruption in
        let radio = try spec.open(interruption: interruption)
        isOpen.signal()
        #expect(throws: RadioError.interrupted) { while true { _ = try radio.next(until: nil) } }
      }
    }
    #expect(commands.suffix(2) == [Self.scanOn, Self.scanOff])
  }

  @Test("say that a controller has no Low Energy")
  func noLowEnergy() throws {
    _ = try commands(.init(lowEnergy: false)) { spec in
      #expect(throws: RadioError.noLowEnergy(radio: "\(spec)")) { try spec.open() }
    }
  }

  @Test("say that the controller hung up, after what it said before")
  func hungUp() throws {
    _ = try commands(.init(sends: Self.beacons, hangsUp: true)) { spec in
      let radio = try spec.open()
      #expect(try hear(radio, 2) == [1, 2])
      #expect(throws: RadioError.lost(radio: "\(spec)", reason: "the controller closed the connection")) {
        try radio.next(until: nil)
      }
    }
  }

  @Test("say that the controller reports a hardware error")
  func hardwareError() throws {
    _ = try commands(.init(sends: [[0x04, 0x10, 0x01, 0x42]])) { spec in
      let radio = try spec.open()
      #expect(throws: RadioError.lost(radio: "\(spec)", reason: "the controller reports a hardware error")) {
        try radio.next(until: nil)
      }
    }
  }

  @Test("say where the stream stopped being H4, after what it said before")
  func garbled() throws {
    let commands = try commands(.init(sends: Self.beacons + [[0x55]])) { spec in
      let radio = try spec.open()
      #expect(try hear(radio, 2) == [1, 2])
      #expect {
        try radio.next(until: nil)
      } throws: { error in
        guard case .garbled("\(spec)", _, 0x55) = error as? RadioError else { return false }
        return true
      }
    }
    #expect(commands.last == Self.scanOff)
  }

  @Test("say why there is no connection")
  func noConnection() throws {
    let folder = try TemporaryFolder()
    let spec = RadioSpec.h4(.unix(path: "\(folder.path)/socket"))
    #expect(throws: RadioError.cannotConnect(radio: "\(spec)", reason: "No such file or directory")) { try spec.open() }
    // Port 1 (tcpmux) of this machine: nobody listens there.
    let refused = RadioSpec.h4(.tcp(host: "127.0.0.1", port: 1))
    #expect(throws: RadioError.cannotConnect(radio: "\(refused)", reason: "Connection refused")) { try refused.open() }
  }
}
