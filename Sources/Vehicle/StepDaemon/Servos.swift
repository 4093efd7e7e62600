import Domain
import Encoding
import Glibc
package import StepController
import Synchronization
import SystemIO

/// A simulated servo: when a motion begins, it appends a line with a JSON object to a file.
package final class SimulatedServo: ServoDriver, Sendable {
  private let worker: Worker<ServoOrder>

  /// - Parameters:
  ///   - log: the file, created at the first motion.
  ///   - configuration: the path of this program's configuration, which other programs are told.
  ///   - report: called on the servo's thread.
  /// - Throws: `DriverError` if another program drives the servo.
  package init(log: String, configuration: String, report: @escaping @Sendable (ServoReport) -> Void) throws {
    // A device such as /dev/null takes the motions of any number of servos.
    var status = stat()
    let isDevice = stat(log, &status) == 0 && status.st_mode & S_IFMT == S_IFCHR
    let lock =
      isDevice
      ? nil
      : OutputLock(
        O_WRONLY | O_APPEND, bytes: 0..<1, output: "the simulated servo \(log)", configuration: configuration)
    try lock?.takeIfPossible(log)
    worker = try Worker { orders in
      for order in orders { report(ServoReport(order, Self.execute(order, log, lock))) }
    }
  }

  package func execute(_ order: ServoOrder) { worker.post(order) }

  private static func execute(_ order: ServoOrder, _ log: String, _ lock: OutputLock?) -> ServoReport.Outcome {
    guard case .prepare(let from, let to) = order.action else { return .done }
    let line: JSON = [
      "time_s": .rounded(Double(WallClock.microseconds) / 1e6, places: 3), "step": .string(order.step.description),
      "from": .string(from.rawValue), "to": .string(to.rawValue),
    ]
    do {
      let file = try Descriptor.open(log, O_WRONLY | O_APPEND | O_CREAT, mode: 0o644)
      try lock?.take(log)
      try file.write(line.bytes + [0x0A], log)
    } catch {
      return .failed(.failed("\(error)"))
    }
    // A simulated servo cannot move a step suddenly, so any place will do for an unknown one.
    return .ready(at: from == .unknown ? 0.5 : nil)
  }
}

/// Hobby servos, each on an output that sends pulses. Each step has a thread.
///
/// An output is enabled only when its step first moves, so that starting the controller moves nothing. It then stays
/// enabled, so that the servo holds the step against a person's weight. An output is driven under its `OutputLock`.
package final class PulsedServos: ServoDriver, Sendable {
  private let workers: [StepID: Worker<ServoOrder>]
  private let report: @Sendable (ServoReport) -> Void

  /// - Parameters:
  ///   - configuration: the path of this program's configuration, which other programs are told.
  ///   - report: called on any thread.
  /// - Throws: `DriverError` if another program drives one of the servos.
  package convenience init(
    _ outputs: PWMOutputs, configuration: String, report: @escaping @Sendable (ServoReport) -> Void
  ) throws {
    try self.init(
      outputs.channels.mapValues { PulsedServo(try PWMOutput(outputs, $0, configuration: configuration), $0.pulses) },
      report: report)
  }

  /// - Parameters:
  ///   - configuration: the path of this program's configuration, which other programs are told.
  ///   - report: called on any thread.
  /// - Throws: `DriverError` if another program drives the board.
  package convenience init(
    _ outputs: PCA9685Outputs, configuration: String, report: @escaping @Sendable (ServoReport) -> Void
  ) throws {
    let board = try PCA9685(outputs, configuration: configuration)
    try self.init(
      outputs.channels.mapValues {
        PulsedServo(PCA9685Output(board, $0.channel), $0.pulses)
      }, report: report)
  }

  private init(_ servos: [StepID: PulsedServo], report: @escaping @Sendable (ServoReport) -> Void) throws {
    var workers: [StepID: Worker<ServoOrder>] = [:]
    for (step, servo) in servos {
      workers[step] = try Worker { orders in
        for order in orders { report(ServoReport(order, servo.execute(order.action))) }
      }
    }
    self.workers = workers
    self.report = report
  }

  package func execute(_ order: ServoOrder) {
    guard let worker = workers[order.step] else {
      return report(ServoReport(order, .failed(.failed("no output is configured for \(order.step)"))))
    }
    worker.post(order)
  }
}

extension ServoHardware {
  /// What drives the servos.
  ///
  /// - Parameters:
  ///   - configuration: the path of this program's configuration, which other programs are told.
  ///   - report: called on any thread.
  /// - Throws: `DriverError` if another program drives one of the servos.
  func driver(
    configuration: String, report: @escaping @Sendable (ServoReport) -> Void
  ) throws -> any ServoDriver {
    switch self {
    case .simulated(let log): try SimulatedServo(log: log, configuration: configuration, report: report)
    case .pwm(let outputs): try PulsedServos(outputs, configuration: configuration, report: report)
    case .pca9685(let outputs): try PulsedServos(outputs, configuration: configuration, report: report)
    }
  }
}

/// An output that sends pulses to a servo. Used on one thread; pulses are in nanoseconds.
protocol PulseOutput: Sendable {
  /// The time from one pulse to the next.
  var period: Int { get }
  /// Whether it can be disabled without cutting a pulse short.
  var knowsItsFrame: Bool { get }

  /// Takes the output's lock, and sets up the output. That starts no pulses.
  ///
  /// - Returns: the pulse that it already sends; nil if it sends none, or none that suits a servo.
  func prepare() throws -> Int?
  /// The nearest pulse that the output can send.
  func nearest(to pulse: Int) -> Int
  /// Sets the pulse, from now on or from when the output is enabled.
  func set(_ pulse: Int) throws
  func enable() throws
  func disable() throws
}

/// One servo: converts places into pulses, and skips a pulse that the output already sends.
private final class PulsedServo: Sendable {
  private struct State {
    var isEnabled = false
    /// The last pulse of the output, if it is known.
    var pulse: Int?
  }

  private let output: any PulseOutput
  /// Nanoseconds.
  private let closed: Int
  private let open: Int
  private let state = Mutex(State())

  init(_ output: any PulseOutput, _ pulses: ServoPulses) {
    (self.output, closed, open) = (output, pulses.closed * 1000, pulses.open * 1000)
  }

  func execute(_ action: ServoOrder.Action) -> ServoReport.Outcome {
    do {
      return try state.withLock { state in
        switch action {
        case .prepare:
          state = State()
          state.pulse = try output.prepare()
          state.isEnabled = state.pulse != nil
          return .ready(at: state.pulse.map { Double($0 - closed) / Double(open - closed) })
        case .move(let place):
          try move(to: place, &state)
        case .inch(let place):
          try inch(toward: place, &state)
        case .release:
          if state.isEnabled { try disable(&state) }
        }
        return .done
      }
    } catch {
      return .failed(.failed("\(error)"))
    }
  }

  private func move(to place: Double, _ state: inout State) throws {
    let (pulse, begins) = (output.nearest(to: self.pulse(at: place)), !state.isEnabled)
    // From here on the output may drive the servo, even if one of the calls below reports a failure.
    state.isEnabled = true
    if pulse != state.pulse {
      state.pulse = nil
      try output.set(pulse)
      state.pulse = pulse
    }
    if begins { try output.enable() }
  }

  private func inch(toward place: Double, _ state: inout State) throws {
    let pulse = pulse(at: place)
    try move(to: place, &state)
    // The pulse comes at the beginning of the frame. If the beginning is unknown, the pulse needs one more frame to be
    // complete, and one pulse in ten is cut short. The servo ignores a short pulse, or makes one small step the other
    // way.
    let time = output.knowsItsFrame ? max(output.period / 2, pulse + 200_000) : output.period + pulse
    usleep(useconds_t(time / 1000))
    try disable(&state)
  }

  private func disable(_ state: inout State) throws {
    try output.disable()
    state = State()
  }

  /// Nanoseconds.
  private func pulse(at place: Double) -> Int { closed + Int((Double(open - closed) * place).rounded()) }
}
