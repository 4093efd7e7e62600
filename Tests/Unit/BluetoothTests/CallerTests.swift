import Bluetooth
import Domain
import Ranging
import SystemIO
import TestSupport
import Testing

@Suite("calls that a controller is told to send")
struct CallerTests {
  private typealias Command = VirtualController.Command

  private let frames = (0..<3).map { Domain.UUID(high: 0x4000, low: 0x8000_0000_0000_0000 + $0) }

  /// Runs `body` while a controller serves, and gives the commands that it got after those that initialise it.
  private func commands(
    _ character: VirtualController.Character = .init(), _ body: (any Caller) throws -> Void
  ) throws -> [VirtualController.Command] {
    let folder = try TemporaryFolder()
    let controller = try VirtualController(folder, character)
    let thread = Thread { controller.serve() }
    try body(RadioSpec.h4(.unix(path: controller.path)).caller())
    thread.join()
    return Array(controller.commands.dropFirst(5))
  }

  @Test("each frame has an address of its own, which nobody can resolve, and nobody can connect")
  func addresses() throws {
    let commands = try commands { caller in
      for frame in frames { try caller.call(frame) }
      caller.close()
      caller.close()
    }
    let addresses = commands.filter { $0.opcode == 0x2035 }.map { Array($0.parameters.dropFirst()) }
    #expect(addresses.count == 3 && Set(addresses).count == 3)
    for address in addresses { #expect(address[5] & 0xC0 == 0) }
    let data = commands.filter { $0.opcode == 0x2037 }.map { Array($0.parameters.dropFirst(4)) }
    #expect(data == frames.map(CallFrame.advertisingData))
    // Legacy PDUs, neither connectable nor scannable.
    #expect(commands.filter { $0.opcode == 0x2036 }.map { Array($0.parameters[1...2]) } == [[0x10, 0]])
    // For 10 s each time, in units of 10 ms: of a program that is killed nothing stays on the air.
    let enabled = commands.filter { $0.opcode == 0x2039 && $0.parameters[0] == 1 }.map(\.parameters)
    #expect(enabled == frames.map { _ in [1, 1, 0xE8, 0xE8, 0x03, 0] })
    #expect(commands.suffix(2).map(\.opcode) == [0x2039, 0x203C])
  }

  @Test("a controller that refuses to enable what is enabled is disabled for a moment")
  func enabledAlready() throws {
    let commands = try commands(.init(refusesEnablingTwice: true)) { caller in
      for frame in frames.prefix(2) { try caller.call(frame) }
    }
    let first = try #require(commands.firstIndex { $0.opcode == 0x2039 && $0.parameters[0] == 1 })
    let rest = commands[(first + 1)...].prefix(5)
    #expect(rest.map(\.opcode) == [0x2035, 0x2037, 0x2039, 0x2039, 0x2039])
    #expect(rest.suffix(3).map(\.parameters[0]) == [1, 0, 1])
  }

  @Test("an older controller has one address for a call, and not its own")
  func legacy() throws {
    let commands = try commands(.init(extended: false)) { caller in
      for frame in frames { try caller.call(frame) }
    }
    let addresses = commands.filter { $0.opcode == 0x2005 }
    #expect(addresses.count == 1 && addresses.allSatisfy { $0.parameters[5] & 0xC0 == 0 })
    // ADV_NONCONN_IND, from the random address.
    #expect(commands.filter { $0.opcode == 0x2006 }.map { Array($0.parameters[4...5]) } == [[0x03, 0x01]])
    #expect(
      commands.filter { $0.opcode == 0x2008 }.map { Array($0.parameters[1...18]) }
        == frames.map(CallFrame.advertisingData))
    #expect(commands.last == Command(opcode: 0x200A, parameters: [0]))
  }

  @Test("while it scans, an older controller takes no address, so the scan pauses and goes on")
  func scanning() throws {
    let commands = try commands(.init(extended: false, refuses: [0x2005: 0x0C])) { caller in
      #expect(throws: RadioError.self) { try caller.call(frames[0]) }
    }
    #expect(commands.map(\.opcode) == [0x200A, 0x2005, 0x200C, 0x2005, 0x200C])
    #expect(commands.filter { $0.opcode == 0x200C }.map(\.parameters[0]) == [0, 1])
  }

  @Test("a capture calls nobody")
  func capture() {
    #expect(throws: RadioError.cannotAdvertise(radio: "btsnoop:x")) { try RadioSpec.btsnoop("x").caller() }
  }
}
