public import ArgumentParser
import Bluetooth
import CommandParts
import Domain
import Evaluation
import FileFormats
import Ranging
import SystemIO
import Terminal
import UserSettings

struct Calibrate: ContextCommand {
  static let configuration = CommandConfiguration(
    commandName: "calibrate",
    abstract: TechnicianCommand.calibrate.abstract,
    usage: "stepctl calibrate [<options>] [<vehicle>]",
    discussion: """
      It leads you through 0.3, 1 and 3 m in front of each step, with the device in your hand and in a pocket. The \
      result is each step's measured_power, the RSSI at 1 m, which replaces what the beacon sends. The levels at which \
      zones begin are relative to it, and stay.

      What was measured is kept beside the vehicle file (vehicle.toml.calibration) until it is written there: after an \
      interruption the next run goes on where the last one ended.

      --captures takes the positions from recordings made with `stepctl scan --save`, named STEP-DISTANCE-CARRY.btsnoop, \
      as left-0.3-hand.btsnoop and right-3-pocket.btsnoop. Missing ones are left out.
      """)

  @Option(
    help: ArgumentHelp("The only step to calibrate (default: all).", valueName: "id"), completion: LiveCompletion.step)
  var step: StepID?

  @Option(help: "How long to listen at a position at the most, as 30 or 30s (default: 60).")
  var seconds: TimeSpan?

  @Option(
    help: ArgumentHelp("Take the positions from captures in this folder.", valueName: "dir"), completion: .directory)
  var captures: String?

  @Flag(help: "Measure all positions again, also those that an earlier run has kept.")
  var again = false

  @Flag(name: .shortAndLong, help: "Write the vehicle file without asking, unless that would make it worse.")
  var yes = false

  @Flag(help: "Do not write the vehicle file.")
  var dryRun = false

  @OptionGroup var vehicle: NamedVehicleOptions
  @OptionGroup var radio: RadioOptions
  @OptionGroup var input: InputOptions
  @OptionGroup var output: OutputOptions

  func validate() throws {
    guard (2...120).contains(listeningTime) else { throw ValidationError("--seconds takes 2 to 120 seconds.") }
    if yes, dryRun { throw ValidationError("--yes and --dry-run exclude each other.") }
    if captures != nil, again { throw ValidationError("--captures and --again exclude each other.") }
    if captures != nil, radio.radio != nil { throw ValidationError("--captures and --radio exclude each other.") }
  }

  private var listeningTime: Double { seconds?.seconds ?? 60 }

  func run(in context: Context) throws {
    let console = output.console(context)
    let settings = try context.settings(vehicle: vehicle.vehicle, radio: radio.radio)
    let file = try VehicleFile(reading: settings.vehicleFile())
    let steps = try step.map { [try file.vehicle.required($0)] } ?? file.vehicle.steps
    if !dryRun { try CalibrationReport.checkEditing(steps, in: file.path) }
    let interruption = try context.interruption()
    let questions = input.questions(context, interruption)
    let source: any PositionSource
    if let captures {
      source = try CapturedPositions(
        vehicle: file.vehicle, folder: captures, interruption: interruption, console: console)
    } else {
      let guide = try GuidedPositions(
        vehicle: file.vehicle, radio: settings.radioSpec(), longest: listeningTime, interruption: interruption,
        questions: questions, console: console, progress: CalibrationProgress(of: file.vehicle, beside: file.path),
        now: { context.seconds })
      try guide.begin(steps, again: again)
      source = guide
    }

    var report = CalibrationReport(
      vehicle: file.vehicle, path: file.path, calibrations: try measure(steps, with: source))
    if !console.isJSON { for line in report.lines { try console.result(line) } }
    let answer = try answer(to: report, questions)
    let isWanted = answer == "y"
    // The measurements are printed even if they cannot be written.
    let writing = Result { if isWanted { try report.write() } }
    if console.isJSON { try console.result(report.json) }
    try writing.get()
    if isWanted || report.changes.isEmpty { try source.forget(steps) }
    if isWanted {
      if !console.isJSON { try console.result("wrote \(file.path)") }
      console.note("riders' copies of this file still have the old values; make them again")
    }
    if !console.isJSON { for line in report.summary { try console.result(line) } }
    if answer == "q" {
      source.tellKept(steps)
      throw console.quit
    }
    if yes, report.isWorse {
      throw CommandFailure(
        .failure, "not written: the correct zone would be found less often than before",
        hint: "run it with --again and mind the positions that are far off, or without --yes")
    }
  }

  private func measure(_ steps: [Step], with source: any PositionSource) throws -> [StepCalibration] {
    do { return try steps.map { step in try calibrate(step, with: source) } } catch {
      source.tellKept(steps)
      throw error
    }
  }

  private func calibrate(_ step: Step, with source: any PositionSource) throws -> StepCalibration {
    let recordings = try CalibrationPosition.all.compactMap { try source.record(step, at: $0) }
    do {
      return try StepCalibration(of: step, from: recordings)
    } catch {
      // Otherwise the next run would end here again.
      try source.forget([step])
      throw CommandFailure(
        .badData, "the \(step.id) step cannot be calibrated: \(error)", hint: "nothing was written; measure it again")
    }
  }

  /// - Returns: `y` to write the vehicle file, and `q` to end with a failure.
  private func answer(to report: CalibrationReport, _ questions: Questions) throws -> Character {
    if dryRun || report.changes.isEmpty { return "n" }
    if yes { return report.isWorse ? "n" : "y" }
    return try questions.confirm(report.question, suggestion: !report.isWorse, keys: ["s", "q"])
  }
}

extension StepID: ExpressibleByArgument {
  package init?(argument: String) { self.init(argument) }
}
