import ArgumentParser
import CommandParts
import Domain
import Evaluation
import FileFormats
import SystemIO
import Terminal
import UserSettings

struct Evaluate: ContextCommand {
  static let configuration = CommandConfiguration(
    commandName: "evaluate",
    abstract: TechnicianCommand.evaluate.abstract,
    usage: """
      stepctl evaluate <captures> ... --positions <file> [--plot <dir>]
      stepctl evaluate --outcomes <files> ... [--plot <dir>]
      """,
    discussion: """
      The captures are made with `stepctl scan --save`, one at each position. The positions file is CSV with the columns \
      capture, side and distance_m, and, where they are known, x_m, y_m, body and method. Outcomes are what \
      `stepctl open --json` printed, a line for each attempt.
      """)

  @Argument(
    help: ArgumentHelp("Captures, each of one position.", valueName: "captures"),
    completion: .file(extensions: ["btsnoop"]))
  var captures: [String] = []

  @Option(
    help: ArgumentHelp("Where the captures were taken (CSV).", valueName: "file"),
    completion: .file(extensions: ["csv"]))
  var positions: String?

  @Option(
    parsing: .upToNextOption,
    help: ArgumentHelp(
      "What `stepctl open --json` printed, to compare methods by: all files up to the next option.", valueName: "files"),
    completion: .file(extensions: ["jsonl"]))
  var outcomes: [String] = []

  @Option(help: ArgumentHelp("Draw into this folder (SVG).", valueName: "dir"), completion: .directory)
  var plot: String?

  @OptionGroup var vehicle: VehicleOptions
  @OptionGroup var output: OutputOptions

  func validate() throws {
    if captures.isEmpty, outcomes.isEmpty {
      throw ValidationError("Name captures with --positions, or outcomes with --outcomes.")
    }
    if captures.isEmpty != (positions == nil) {
      throw ValidationError(
        captures.isEmpty
          ? "--positions needs captures." : "Captures need --positions, a file that says where they were taken.")
    }
  }

  func run(in context: Context) throws {
    let console = output.console(context)
    let site = try positions.map { file in
      let settings = try context.settings(vehicle: vehicle.vehicle)
      let survey = try Survey(captures, positions: file, of: VehicleFile(reading: settings.vehicleFile()).vehicle)
      return try survey.evaluated(context.interruption(), console)
    }
    let openings = try outcomes.flatMap(OutcomeLines.read)
    let report = EvaluationReport(site: site, openings: OpeningStatistics.each(of: openings))
    if let plot { try EvaluationPlots(report).write(to: plot) }
    if console.isJSON { return try console.result(report.json) }
    for line in report.lines(console.styled) { try console.result(line) }
  }
}

/// Files with the output of `stepctl open --json`.
enum OutcomeLines {
  /// The size limit in bytes: a hundred thousand attempts.
  private static let longest = 32 << 20

  static func read(_ path: String) throws -> [Opening] {
    let lines = try Files.readRegular(path, limit: longest).split(separator: 0x0A, omittingEmptySubsequences: false)
    var openings: [Opening] = []
    for (index, line) in lines.enumerated() where !line.isEmpty {
      do throws(Opening.Flaw) {
        if let opening = try Opening(parsing: Array(line)) { openings.append(opening) }
      } catch {
        throw CommandFailure(.badData, "\(path):\(index + 1): expected \(error.expected)")
      }
    }
    guard !openings.isEmpty else { throw CommandFailure(.badData, "\(path): there is no outcome in it") }
    return openings
  }
}
