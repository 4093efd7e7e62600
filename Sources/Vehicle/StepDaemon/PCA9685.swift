import CDevices
import Domain
import Glibc
import StepController
import Synchronization
import SystemIO

/// A PCA9685: 16 outputs that share one frame. The chip has its own clock (NXP, PCA9685 data sheet, revision 4).
final class PCA9685: Sendable {
  enum Fault: Failure, Equatable {
    /// The chip has lost its settings: its power failed for a moment, or another program has changed them.
    case wasReset(String)
    /// The chip does not keep what is written to it, so it is not a PCA9685.
    case isAnother(String)

    var exitStatus: ExitStatus { .unavailable }

    var description: String {
      switch self {
      case .wasReset(let chip): "\(chip) has lost its settings"
      case .isAnother(let chip): "\(chip) does not keep its settings: is it a PCA9685?"
      }
    }
  }

  /// Table 4. The four registers of output N begin at `output + 4 * N`: two for its on time, two for its off time.
  fileprivate enum Register {
    static let mode1: Int32 = 0x00
    static let mode2: Int32 = 0x01
    static let output: Int32 = 0x06
    static let prescale: Int32 = 0xFE
  }

  /// Table 5.
  private enum Mode1 {
    static let externalClock: Int32 = 0x40
    static let autoIncrement: Int32 = 0x20
    static let sleep: Int32 = 0x10
  }

  /// Table 6: outputs that drive both ways, which is the state after power-up.
  private static let totemPole: Int32 = 0x04
  /// In the highest register of the four: off for the whole frame (table 8).
  private static let fullOff: UInt8 = 0x10
  /// Wake-up time after sleep, microseconds (7.3.1, MODE1, SLEEP).
  private static let awakening: useconds_t = 500

  private let bus: String
  private let address: Int32
  private let name: String
  private let outputs: [Int]
  /// The divisor of the 25 MHz clock, minus one (7.3.5).
  private let prescale: Int32
  /// Held by one step's thread at a time, because the chip has only one mode.
  private let turn = Mutex(())
  private let lock: OutputLock

  /// The unit of pulses, nanoseconds: 40 ns of the clock times its divisor. A frame has 4096 units.
  var unit: Int { 40 * Int(prescale + 1) }

  /// - Parameter configuration: the path of this program's configuration, which other programs are told.
  /// - Throws: `DriverError` if another program drives the board.
  init(_ outputs: PCA9685Outputs, configuration: String) throws {
    (bus, address, name) = (outputs.bus, Int32(outputs.address), outputs.name)
    self.outputs = outputs.channels.values.map(\.channel)
    prescale = Int32((25_000_000 / (4096 * Double(outputs.frequency))).rounded()) - 1
    let first = 16 * outputs.address
    lock = OutputLock(
      O_RDWR, bytes: first..<first + 16, output: "the PCA9685 at \(name)", configuration: configuration)
    try lock.takeIfPossible(bus)
  }

  /// Takes the board's lock, and sets up the chip, unless it is set up already.
  ///
  /// - Returns: for how many units of a frame the output is on; nil when it is off.
  func prepare(_ output: Int) throws -> Int? {
    try lock.take(bus)
    return try withBus { bus throws in
      if try !isSetUp(bus) {
        // The frame can be changed only while the chip sleeps, and our outputs must not begin to drive when it wakes
        // up.
        for output in outputs { try write(output, [0, 0, 0, Self.fullOff], bus) }
        try write(Register.mode1, Mode1.sleep | Mode1.autoIncrement, bus)
        try write(Register.prescale, prescale, bus)
        try write(Register.mode2, Self.totemPole, bus)
        try write(Register.mode1, Mode1.autoIncrement, bus)
        usleep(Self.awakening)
        guard try isSetUp(bus) else { throw Fault.isAnother(name) }
      }
      let first = Register.output + 4 * Int32(output)
      let values = try (0..<4).map { try read(first + $0, bus) }
      // A pulse that begins later in the frame, or lasts for all of it (bit 4), is not from this program.
      guard values[0] == 0, values[1] == 0, values[3] & ~0x0F == 0, values[2] | values[3] != 0 else {
        try write(output, [0, 0, 0, Self.fullOff], bus)
        return nil
      }
      return Int(values[3] << 8 | values[2])
    }
  }

  /// Turns an output on for this many units of each frame, from the frame's beginning; nil turns it off.
  ///
  /// The four registers take effect together, at the end of the transfer (7.3.3).
  func set(_ output: Int, _ units: Int?) throws {
    try withBus { bus throws in
      // A chip that has lost its power would accept the pulse without sending it.
      guard try units == nil || isSetUp(bus) else { throw Fault.wasReset(name) }
      try write(output, [0, 0] + (units.map { [UInt8($0 & 0xFF), UInt8($0 >> 8)] } ?? [0, Self.fullOff]), bus)
    }
  }

  private func isSetUp(_ bus: Int32) throws(SystemError) -> Bool {
    let mode = try read(Register.mode1, bus)
    let concerned = Mode1.sleep | Mode1.autoIncrement | Mode1.externalClock
    let divisor = try read(Register.prescale, bus)
    return mode & concerned == Mode1.autoIncrement && divisor == prescale
  }

  private func withBus<Result>(_ body: (Int32) throws -> Result) throws -> Result {
    try turn.withLock { _ in
      let device = try Self.open(bus, address, name)
      return try body(device.number)
    }
  }

  /// - Returns: the bus, for transfers with the device at this address.
  fileprivate static func open(_ bus: String, _ address: Int32, _ name: String) throws(SystemError) -> Descriptor {
    let device = try Descriptor.open(bus, O_RDWR)
    let number = device.number
    _ = try SystemIO.check("use", name) { i2c_select(number, address) }
    return device
  }

  private func read(_ register: Int32, _ bus: Int32) throws(SystemError) -> Int32 {
    try SystemIO.check("read", name) { i2c_read_register(bus, register) }
  }

  private func write(_ register: Int32, _ value: Int32, _ bus: Int32) throws(SystemError) {
    _ = try SystemIO.check("write", name) { i2c_write_register(bus, register, value) }
  }

  private func write(_ output: Int, _ values: [UInt8], _ bus: Int32) throws(SystemError) {
    _ = try SystemIO.check("write", name) {
      i2c_write_registers(bus, Register.output + 4 * Int32(output), values, Int32(values.count))
    }
  }
}

extension PCA9685Outputs {
  fileprivate var name: String { "\(bus) 0x\(String(address, radix: 16))" }

  /// Throws if the bus does not exist, or nothing answers at the board's address. Changes nothing.
  ///
  /// - Returns: what the steps' servos are connected to.
  func check() throws -> [String] {
    let device = try PCA9685.open(bus, Int32(address), name)
    let number = device.number
    _ = try SystemIO.check("read", name) { i2c_read_register(number, PCA9685.Register.mode1) }
    return channels.sorted { $0.key.description < $1.key.description }.map { step, channel in
      "the servo of the step \(step) is at output \(channel.channel) of the PCA9685 at \(name)"
    }
  }
}

/// One output of a PCA9685. It has no switch of its own: it is on while its pulse is set.
struct PCA9685Output: PulseOutput {
  /// The chip does not report its position in the frame.
  let knowsItsFrame = false
  private let board: PCA9685
  private let number: Int

  init(_ board: PCA9685, _ number: Int) { (self.board, self.number) = (board, number) }

  var period: Int { 4096 * board.unit }

  func prepare() throws -> Int? { try board.prepare(number).map { $0 * board.unit } }

  func nearest(to pulse: Int) -> Int { (pulse + board.unit / 2) / board.unit * board.unit }

  func set(_ pulse: Int) throws { try board.set(number, pulse / board.unit) }

  func enable() {}

  func disable() throws { try board.set(number, nil) }
}
