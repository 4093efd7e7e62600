import Bluetooth
import Domain
import Encoding
import Glibc
import Ranging
import Synchronization
import SystemIO
import Terminal
import TestSupport

@testable import CommandParts
@testable import OperatorCommands
@testable import UserSettings

/// Where a test types commands: they run in process, in a home of their own, at a time of their own.
struct Shell {
  let folder: TemporaryFolder
  var environment: [String: String]
  /// Of the terminal that everything is printed to; nil where that is a pipe.
  var size: Screen.Size?
  /// What is typed as answers, a line each; nil where standard input is no terminal and has ended.
  var answers: [String]?
  /// Why nothing can be printed any more: an errno.
  var outputFault: Int32?
  var now = UnixTime(microseconds: 1_795_275_000_000_000)
  var isInterrupted = false

  init() throws {
    folder = try TemporaryFolder()
    environment = ["HOME": "\(folder.path)/home"]
  }

  /// What a command printed, and how it ended.
  struct Ended {
    let output: String
    let errors: String
    let ending: Program.Ending

    var lines: [String] { output.split(separator: "\n", omittingEmptySubsequences: false).dropLast().map(String.init) }
    var notes: [String] { errors.split(separator: "\n").map(String.init) }
    /// The objects of a command that prints JSON.
    var objects: [JSON] { get throws { try lines.map { try JSON(parsing: Array($0.utf8), maximumDepth: 8) } } }
  }

  /// Runs `stepctl` with some arguments.
  func types(_ arguments: String...) -> Ended { types(arguments) }

  func types(_ arguments: [String]) -> Ended {
    ends { context in
      Program.run(StepctlOperatorCommand.self, arguments, context.streams, .stepctlOperator(in: context))
    }
  }

  /// Runs the same command several times at once.
  func together(_ count: Int, _ arguments: String...) throws -> [Ended] {
    let running = try (0..<count).map { _ in try Meanwhile { types(arguments) } }
    return try running.map { try $0.result() }
  }

  /// Runs a part of a command, and reports its errors as the program does.
  func runs(_ body: (Context) throws -> Void) -> Ended {
    ends { context in
      do {
        try body(context)
        return .status(.done)
      } catch {
        return Program.report(error, of: CommandTyped(StepctlOperatorCommand.self, []), context.streams)
      }
    }
  }

  private func ends(_ body: (Context) -> Program.Ending) -> Ended {
    let output = Record(size: size, fault: outputFault)
    let errors = Record(size: size, fault: nil)
    let (now, isInterrupted) = (now, isInterrupted)
    let ending = body(
      Context(
        streams: StandardStreams(
          output: output, errors: errors, input: Answers(answers), environment: environment),
        folders: ConfigurationFolders(environment: environment, system: "\(folder.path)/etc"),
        clocks: Context.Clocks(wall: { now }, steady: { .now }),
        interruption: { () throws(SystemError) in
          let interruption = try Interruption.manual()
          if isInterrupted { interruption.interrupt() }
          return interruption
        }))
    return Ended(output: output.text, errors: errors.text, ending: ending)
  }

  /// A file's path in the folder.
  func path(_ name: String) -> String { "\(folder.path)/\(name)" }
}

extension Shell {
  static let vehicle = UUID("5f3c1c0e-7a0b-4f57-9a55-1f0f6c1b2a90")!

  /// Writes the file of a vehicle with two steps.
  func vehicleFile(_ name: String = "van.toml") throws -> String {
    try folder.write(
      name,
      """
      name = "Van"
      uuid = "\(Shell.vehicle)"

      [[steps]]
      id = "left"
      side = "left"
      major = 1

      [[steps]]
      id = "right"
      side = "right"
      major = 2

      """)
  }

  /// Writes a capture of frames of the vehicle's beacons: seconds, the step's side, and dBm.
  func capture(_ name: String, _ frames: [(time: Double, side: Side, rssi: Int8?)]) throws -> String {
    let records = frames.map { frame in
      let major: UInt16 = frame.side == .left ? 1 : 2
      let beacon = IBeacon(uuid: Shell.vehicle, major: major, minor: 1, measuredPower: -59)
      return BTSnoopEncoder.record(
        of: Advertisement(
          time: UnixTime(microseconds: 1_767_225_600_000_000 + Int64(frame.time * 1e6)),
          address: DeviceAddress(UInt64(0xC600_0000_0000) + UInt64(major)), rssi: frame.rssi,
          data: beacon.advertisingData))
    }
    let path = path(name)
    try Files.createFolder(Files.parent(of: path), mode: 0o700)
    try Files.replace(path, with: BTSnoopEncoder.fileHeader + records.joined(), mode: 0o600)
    return path
  }
}

/// What was printed.
final class Record: Output {
  let size: Screen.Size?
  private let fault: Int32?
  private let bytes = Mutex<[UInt8]>([])

  init(size: Screen.Size?, fault: Int32?) {
    self.size = size
    self.fault = fault
  }

  func write(_ bytes: some Sequence<UInt8>) throws(SystemError) {
    if let fault { throw SystemError("write to", "standard output", code: fault) }
    let written = Array(bytes)
    self.bytes.withLock { $0 += written }
  }

  var text: String { String(decoding: bytes.withLock { $0 }, as: UTF8.self) }
}

/// Answers that somebody types, one at a time.
final class Answers: Input {
  let isTerminal: Bool
  private let lines: Mutex<[String]>

  init(_ lines: [String]?) {
    isTerminal = lines != nil
    self.lines = Mutex(lines ?? [])
  }

  func discardTyped() {}
  func show(typed isShown: Bool) {}

  func isReadable(until deadline: Instant, _ interruption: Interruption) throws -> Bool { true }

  func read(until interruption: Interruption) throws -> [UInt8] {
    if interruption.isPending { throw Interrupted() }
    return lines.withLock { $0.isEmpty ? [] : Array("\($0.removeFirst())\n".utf8) }
  }
}
