import Glibc
import Synchronization
import SystemIO
import TestSupport

/// A small Bluetooth controller behind a local socket, strict where the specification is (Core 5.4, Vol 4, Part E).
final class VirtualController: Sendable {
  /// How it differs from a good Bluetooth 5 controller.
  struct Character: Sendable {
    var extended = true
    var lowEnergy = true
    /// Gives no credit with an answer, and one a little later, in a Command Complete for no command (4.4).
    var givesCreditsLate = false
    /// How many beacons it can be at a time.
    var advertisingSets: UInt8 = 2
    /// What somebody else does with it when advertising was enabled for the first time.
    var meddling: Meddling?
    /// Says 0x0C when advertising is enabled that already is. It need not (7.8.56), but there are such.
    var refusesEnablingTwice = false
    /// Commands that it answers with an error status, by opcode.
    var refuses: [UInt16: UInt8] = [:]
    /// Commands that it does not answer.
    var ignores: Set<UInt16> = []
    /// Signaled when it has not answered one.
    var hasIgnored: Wakeup?
    /// What it sends when it is told to scan, if the host has unmasked LE events.
    var sends: [[UInt8]] = []
    /// Closes the connection after having sent that.
    var hangsUp = false
    /// Closes the connection after having obeyed such a command.
    var hangsUpAfter: UInt16?
  }

  enum Meddling: CaseIterable, Sendable {
    /// Resets it, as `hciconfig hci0 reset`: every set and parameter of advertising is gone.
    case reset
    /// Advertises in our place, where a controller can be one beacon only.
    case takeover
  }

  struct Command: Equatable, Sendable {
    let opcode: UInt16
    let parameters: [UInt8]
  }

  let path: String
  private let character: Character
  private let received = Mutex<[Command]>([])

  /// Listens; call `serve` on a thread.
  private let listener: Descriptor

  init(_ folder: TemporaryFolder, _ character: Character = Character()) throws {
    path = "\(folder.path)/socket"
    self.character = character
    listener = Descriptor(adopting: socket(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0))
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    withUnsafeMutableBytes(of: &address.sun_path) { [path] in $0.copyBytes(from: path.utf8) }
    let size = socklen_t(MemoryLayout<sockaddr_un>.size)
    let number = listener.number
    _ = try withUnsafeBytes(of: &address) { bytes in
      try check("bind", path) { bind(number, bytes.assumingMemoryBound(to: sockaddr.self).baseAddress, size) }
    }
    _ = try check("listen") { listen(number, 1) }
  }

  /// The commands so far, in order.
  var commands: [Command] { received.withLock { $0 } }

  /// Serves one host until it hangs up.
  func serve() {
    let host = Descriptor(adopting: accept(listener.number, nil, nil))
    var state = State(character)
    var buffer: [UInt8] = []
    while let command = nextCommand(host, &buffer) {
      received.withLock { $0.append(command) }
      if character.ignores.contains(command.opcode) {
        character.hasIgnored?.signal()
        continue
      }
      let status = character.refuses[command.opcode] ?? state.status(of: command, extended: character.extended)
      let credits: UInt8 = character.givesCreditsLate ? 0 : 1
      let header = [0x04, 0x0E, 0, credits, UInt8(command.opcode & 0xFF), UInt8(command.opcode >> 8), status]
      let answer = header + (status == 0 ? returnParameters(command.opcode) : [])
      guard send(answer, to: host) else { return }
      if status == 0, command.opcode == character.hangsUpAfter { return }
      if character.givesCreditsLate {
        // A host that has no credit and does not wait for it loses the connection.
        var entry = pollfd(fd: host.number, events: Int16(POLLIN), revents: 0)
        guard poll(&entry, 1, 5) == 0 else { return }
        // 7.7.14: opcode 0 only tells the credits.
        guard send([0x04, 0x0E, 0, 1, 0x00, 0x00], to: host) else { return }
      }
      let isScanOn = status == 0 && command.isScanEnable && command.parameters[0] == 1
      if isScanOn, state.reportsAdvertisements(character.extended) {
        for packet in character.sends {
          guard write(packet, to: host) else { return }
        }
        if character.hangsUp { return }
      }
    }
  }

  /// What the specification makes of the commands so far.
  private struct State {
    var eventMask: UInt64 = 0x1FFF_FFFF_FFFF
    var leEventMask: UInt64 = 0x1F
    var isScanning = false
    var isReset = false
    let character: Character
    private var isAdvertising = false
    private var sets: [UInt8: AdvertisingSet] = [:]
    private var meddling: Meddling?

    init(_ character: Character) {
      self.character = character
      meddling = character.meddling
    }

    private struct AdvertisingSet {
      var hasAddress = false
      var isOn = false
    }

    func reportsAdvertisements(_ extended: Bool) -> Bool {
      eventMask >> 61 & 1 == 1 && leEventMask >> (extended ? 12 : 1) & 1 == 1
    }

    mutating func status(of command: Command, extended: Bool) -> UInt8 {
      let invalidParameters: UInt8 = 0x12
      let disallowed: UInt8 = 0x0C
      let parameters = command.parameters
      switch command.opcode {
      case 0x0C03:
        self = State(character)
        isReset = true
      case _ where !isReset: return disallowed
      case 0x0C01 where parameters.count == 8: eventMask = parameters.littleEndian
      case 0x2001 where parameters.count == 8: leEventMask = parameters.littleEndian
      case 0x1003 where parameters.isEmpty, 0x2003 where parameters.isEmpty: break
      // A controller of old does not know the new commands, and a new one that was given one does not take old ones.
      case 0x200B, 0x200C: if extended { return disallowed } else { fallthrough }
      case 0x2041, 0x2042:
        if !extended, command.opcode >= 0x2041 { return 0x01 }
        let isEnable = command.isScanEnable
        guard parameters.count == (extended ? (isEnable ? 6 : 8) : (isEnable ? 2 : 7)) else { return invalidParameters }
        if isEnable {
          guard parameters[0] <= 1, parameters[1] == 0 else { return invalidParameters }
          isScanning = parameters[0] == 1
        } else if isScanning {
          return disallowed
        }
      case 0x2005...0x200A where command.opcode != 0x2007:
        return extended ? disallowed : legacyAdvertising(command)
      case 0x2035...0x203C:
        return extended ? extendedAdvertising(command) : 0x01
      default: return command.opcode >> 10 == 0x08 ? invalidParameters : 0x01
      }
      return 0
    }

    private mutating func legacyAdvertising(_ command: Command) -> UInt8 {
      let parameters = command.parameters
      switch command.opcode {
      case 0x2005 where parameters.count == 6, 0x2006 where parameters.count == 15:
        return isAdvertising ? 0x0C : 0
      case 0x2008 where parameters.count == 32 && parameters[0] <= 31:
        return 0
      case 0x200A where parameters.count == 1 && parameters[0] <= 1:
        isAdvertising = parameters[0] == 1
        if isAdvertising, let meddling {
          isAdvertising = meddling == .takeover
          self.meddling = nil
        }
        return 0
      default: return 0x12
      }
    }

    private mutating func extendedAdvertising(_ command: Command) -> UInt8 {
      let parameters = command.parameters
      guard let handle = parameters.first else { return command.opcode == 0x203B ? 0 : 0x12 }
      let set = sets[handle]
      switch command.opcode {
      case 0x2036 where parameters.count == 25:
        if set?.isOn == true { return 0x0C }
        sets[handle] = set ?? AdvertisingSet()
      case 0x2035 where parameters.count == 7:
        sets[handle]?.hasAddress = true
        return set == nil ? 0x42 : 0
      case 0x2037 where parameters.count == 4 + Int(parameters[3]) && parameters[3] <= 31:
        return set == nil ? 0x42 : 0
      case 0x2039 where parameters.count == 2 + 4 * Int(parameters[1]):
        let handles = stride(from: 2, to: parameters.count, by: 4).map { parameters[$0] }
        guard handles.allSatisfy({ sets[$0] != nil }) else { return 0x42 }
        guard handles.allSatisfy({ sets[$0]?.hasAddress == true }) else { return 0x12 }
        if parameters[0] == 1, character.refusesEnablingTwice, handles.contains(where: { sets[$0]?.isOn == true }) {
          return 0x0C
        }
        for handle in handles { sets[handle]?.isOn = parameters[0] == 1 }
        if parameters[0] == 1, meddling == .reset {
          sets = [:]
          meddling = nil
        }
      case 0x203C where parameters.count == 1:
        if set?.isOn == true { return 0x0C }
        sets[handle] = nil
        return set == nil ? 0x42 : 0
      default: return 0x12
      }
      return 0
    }
  }

  private func returnParameters(_ opcode: UInt16) -> [UInt8] {
    switch opcode {
    case 0x1003: [0, 0, 0, 0, character.lowEnergy ? 0x40 : 0, 0, 0, 0]
    case 0x203B: [character.advertisingSets]
    case 0x2036: [0]
    case 0x2003: [0, character.extended ? 0x10 : 0, 0, 0, 0, 0, 0, 0]
    default: []
    }
  }

  private func nextCommand(_ host: borrowing Descriptor, _ buffer: inout [UInt8]) -> Command? {
    while true {
      if buffer.count >= 4, buffer.count >= 4 + Int(buffer[3]) {
        // A host may send commands here and nothing else; anything else ends the conversation.
        guard buffer[0] == 0x01 else { return nil }
        let command = Command(
          opcode: UInt16(buffer[1]) | UInt16(buffer[2]) << 8, parameters: Array(buffer[4..<4 + Int(buffer[3])]))
        buffer.removeFirst(4 + Int(buffer[3]))
        return command
      }
      var chunk = [UInt8](repeating: 0, count: 256)
      let count = read(host.number, &chunk, chunk.count)
      guard count > 0 else { return nil }
      buffer += chunk[..<count]
    }
  }

  /// Sends an event, whose length it fills in.
  private func send(_ event: [UInt8], to host: borrowing Descriptor) -> Bool {
    var event = event
    event[2] = UInt8(event.count - 3)
    return write(event, to: host)
  }

  private func write(_ bytes: [UInt8], to host: borrowing Descriptor) -> Bool {
    Glibc.send(host.number, bytes, bytes.count, Int32(MSG_NOSIGNAL)) == bytes.count
  }
}

extension VirtualController.Command {
  fileprivate var isScanEnable: Bool { opcode == 0x200C || opcode == 0x2042 }
}

extension [UInt8] {
  fileprivate var littleEndian: UInt64 { reversed().reduce(0) { $0 << 8 | UInt64($1) } }
}
