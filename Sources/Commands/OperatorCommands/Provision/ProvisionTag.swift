import ArgumentParser
import CommandParts
import Domain
import Encoding
import FileFormats
import NFC
import Operator
import StepProtocol
import SystemIO
import Terminal
import UserSettings

struct ProvisionTag: ContextCommand {
  static let configuration = CommandConfiguration(
    commandName: "tag",
    abstract: "Write a step's name to an NFC tag for that step.")

  @Option(help: ArgumentHelp("The step that the tag will be on.", valueName: "id"), completion: LiveCompletion.step)
  var step: StepID

  @Flag(help: "Set up an NTAG 424 DNA, which cannot be copied, instead of a plain tag.")
  var sdm = false

  @Flag(help: "Make the tag read-only for ever. Asks first.")
  var lock = false

  @Flag(help: "Give up whatever else the tag holds, and say what.")
  var replaceAll = false

  @Flag(help: "List the tag as one of the step's in the vehicle file.")
  var register = false

  @Flag(help: "Say what would be written, but write nothing.")
  var dryRun = false

  @Flag(help: "Write one tag after the other, and print a table of them.")
  var batch = false

  @Option(help: ArgumentHelp("End after so many tags with --batch (default: at Control-C).", valueName: "n"))
  var count: Int?

  @Flag(name: .shortAndLong, help: "Do not ask.")
  var yes = false

  @OptionGroup var vehicle: NamedVehicleOptions
  @OptionGroup var nfc: NFCOptions
  @OptionGroup var timeout: TimeoutOptions
  @OptionGroup var input: InputOptions
  @OptionGroup var output: OutputOptions

  func validate() throws {
    if dryRun, lock || register { throw ValidationError("--dry-run excludes --lock and --register.") }
    if sdm, lock || replaceAll { throw ValidationError("--sdm excludes --lock and --replace-all.") }
    if let count {
      guard batch else { throw ValidationError("--count is for --batch.") }
      guard (1...10_000).contains(count) else { throw ValidationError("--count takes 1 to 10000.") }
    }
  }

  func run(in context: Context) throws {
    try run(in: context) { settings, interruption, body in
      let reader = try NFCReader(settings.reader(), interruption: interruption)
      defer { reader.close() }
      try body(reader)
    }
  }

  /// - Parameter withField: switches the reader's field on for the body, and off afterwards.
  func run(
    in context: Context, withField: (Settings, Interruption, (any TagField) throws -> Void) throws -> Void
  ) throws {
    let console = output.console(context)
    let settings = try context.settings(vehicle: vehicle.vehicle, nfc: nfc.nfc, timeout: timeout.typed)
    let file = try VehicleFile(reading: settings.vehicleFile())
    let step = try file.vehicle.required(step)
    let place = VehicleFolder(Files.parent(of: file.path))
    if sdm, !Files.exists(place.path("stepd.toml")) {
      throw CommandFailure(
        .noInput, "\(place.path) has no stepd.toml, and only a vehicle's own folder keeps its tags' keys",
        hint: "use --vehicle with the vehicle.toml in that folder, not with a rider's")
    }
    let interruption = try context.interruption()
    try askWhetherToLock(input.questions(context, interruption))
    try withField(settings, interruption) { field in
      let field: any TagField = console.trace.map { TracedField(field, $0) } ?? field
      let job = TagJob(
        field: field, vehicle: file.vehicle, step: step, replacesAll: replaceAll, locks: lock, isRehearsal: dryRun,
        // If the file lists tags, the vehicle refuses all others, except dynamic ones.
        list: !dryRun && (register || !sdm && !step.tags.isEmpty) ? TagList(path: file.path, step: step.id) : nil,
        dynamicIn: sdm ? place : nil, patience: settings.patience, progress: console.progress)
      if batch {
        let limit = timeout.timeout == nil ? nil : settings.patience
        try TagBatch(job: job, count: count, limit: limit, console: console).run()
      } else {
        console.note("hold the \(step.id) step's tag to the reader (\(tenths(settings.timeout.value)) s)")
        let report = try job.run(until: context.clocks.steady() + settings.patience, tell: console.note)
        try console.isJSON ? console.result(report.json) : report.lines.forEach(console.result)
        if report.needsReload { console.note("reload stepd to apply this") }
        if let failure = report.failure { throw failure }
      }
    }
  }

  private func askWhetherToLock(_ questions: Questions) throws {
    guard lock, !yes else { return }
    let tags = batch ? "every tag" : "the tag"
    guard try questions.confirm("make \(tags) read-only for ever?", suggestion: false) else {
      throw CommandFailure(.failure, "nothing was written", hint: "without --lock the tag can be written again")
    }
  }
}
