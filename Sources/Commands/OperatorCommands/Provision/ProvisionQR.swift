import Access
import ArgumentParser
import CodeDrawing
import CommandParts
import Domain
import Encoding
import FileFormats
import Glibc
import Operator
import StepProtocol
import SystemIO
import Terminal
import UserSettings

/// Draws the code of a step, a sheet with the codes of all steps, or, without either option, the code of the vehicle
/// itself.
struct ProvisionQR: ContextCommand {
  static let configuration = CommandConfiguration(
    commandName: "qr",
    abstract: "Make the QR code of a step, of all steps, or of the vehicle itself.")

  @Option(help: "The step whose code to make (default: the code of the vehicle itself).")
  var step: StepID?

  @Flag(help: "Make a PDF with the codes of all steps, a page each or, with --size, to cut out.")
  var sheet = false

  @Option(help: "How to draw it (default: by the ending of the output's name, else terminal).")
  var format: CodeFormat?

  @Option(
    name: [.customShort("o"), .customLong("output")],
    help: ArgumentHelp("Write into this file, or - (default: standard output).", valueName: "file"),
    completion: .file(extensions: ["png", "svg", "pdf"]))
  var outputName: String?

  private var file: String? { outputName == "-" ? nil : outputName }

  @Option(help: "How much of a code may be damaged (default: M; L for the vehicle's).")
  var level: QRCode.Level?

  @Option(
    help: ArgumentHelp(
      "The side of a printed code, without its margin (default: 40; in a PDF, as large as fits on a page).",
      valueName: "mm"))
  var size: Double?

  @Option(help: "The paper of a PDF.")
  var paper: LabelSheet.Paper = .a4

  @Option(help: ArgumentHelp("How many of each code a PDF has.", valueName: "count"))
  var copies = 1

  @OptionGroup var vehicle: NamedVehicleOptions
  @OptionGroup var output: OutputOptions

  func validate() throws {
    guard step == nil || !sheet else { throw ValidationError("--step and --sheet exclude each other.") }
    if format == nil, let ending, CodeFormat(ending: ending) == nil {
      throw ValidationError(
        "--output takes a name that ends in .png, .svg, .pdf or .txt; for another name, add --format.")
    }
    guard !sheet || chosenFormat == .pdf else { throw ValidationError("--sheet is for --format pdf.") }
    guard copies == 1 || chosenFormat == .pdf else { throw ValidationError("--copies is for --format pdf.") }
    guard (1...1000).contains(copies) else { throw ValidationError("--copies takes 1 to 1000.") }
    guard (10...500).contains(size ?? 40) else { throw ValidationError("--size takes 10 to 500 mm.") }
  }

  private var chosenFormat: CodeFormat {
    format ?? ending.flatMap(CodeFormat.init(ending:)) ?? (sheet ? .pdf : .terminal)
  }

  /// The extension of the output's name, without its point; nil for a name without one.
  private var ending: String? {
    guard let name = file?.split(separator: "/").last, let point = name.lastIndex(of: "."), point > name.startIndex
    else { return nil }
    let ending = name[name.index(after: point)...].lowercased()
    return ending.isEmpty ? nil : ending
  }

  func run(in context: Context) throws {
    let console = output.console(context)
    let path = try vehicleFile(context)
    let vehicle = try VehicleFile(reading: path).vehicle
    let codes = try step == nil && !sheet ? [vehicleCode(path, context, console)] : labels(vehicle)
    if console.isJSON, file == nil {
      try console.result(json(codes))
      return
    }
    let picture = try rendered(codes, vehicle, console)
    guard let file else { return try console.result(picture) }
    try Files.deliver(picture, to: file, mode: 0o644)
    try console.isJSON ? console.result(json(codes)) : console.result("wrote \(file)")
  }

  // MARK: - Content

  private struct Content {
    let step: StepID?
    let text: String
    let code: QRCode

    /// The instruction that is printed below the code.
    var instruction: String {
      step == nil ? "scan once: stepctl config import" : "scan to open: stepctl open --by qr"
    }
  }

  private func labels(_ vehicle: Vehicle) throws -> [Content] {
    try (step.map { [try vehicle.required($0)] } ?? vehicle.steps).map { step in
      let text = StepLabel(vehicle: vehicle.uuid, step: step.id).text
      return Content(step: step.id, text: text, code: try QRCode(Array(text.utf8), level: level ?? .medium))
    }
  }

  private func vehicleCode(_ path: String, _ context: Context, _ console: Console) throws -> Content {
    let (text, key): (String, Thumbprint)
    do {
      (text, key) = try VehicleFolder(Files.parent(of: path)).vehicleCode(now: context.seconds)
    } catch let error as any Failure where error.exitStatus == .noInput {
      throw CommandFailure(
        error.exitStatus, error.description,
        hint: "use --vehicle with the operator's folder of the vehicle, or --step for a step's code")
    }
    // 43 characters and 10 blanks: with more, the line would be wider than a terminal.
    console.note("signed by the operator; riders compare this key:")
    console.note(key.grouped)
    return Content(step: nil, text: text, code: try QRCode(Array(text.utf8), level: level ?? .low))
  }

  /// The vehicle's file, named by its path, its name, or a folder as in `provision token`.
  private func vehicleFile(_ context: Context) throws -> String {
    try context.settings(vehicle: vehicle.vehicle).vehicleFile()
  }

  // MARK: - Picture

  private func rendered(_ codes: [Content], _ vehicle: Vehicle, _ console: Console) throws -> [UInt8] {
    let first = codes[0].code
    switch chosenFormat {
    case .terminal: return try lines(first, console)
    case .svg: return Array(first.svg(size: size ?? 40).utf8)
    case .png: return try binary(first.png(size: size ?? 40), console)
    case .pdf:
      let name = title(vehicle, console)
      let labels = codes.map { code in
        let step = code.step.flatMap(vehicle.step)
        return LabelSheet.Label(
          code.code, side: step?.side, title: step.map { title(name, of: $0) } ?? name,
          instruction: PDFText(ascii: code.instruction))
      }
      return try binary(LabelSheet(labels, size: size, paper: paper, copies: copies).pdf, console)
    }
  }

  private func lines(_ code: QRCode, _ console: Console) throws -> [UInt8] {
    if file == nil, let columns = console.columns, columns < code.columns {
      throw CommandFailure(
        .usage, "the code needs \(code.columns) columns, and the terminal has \(columns)",
        hint: "use --output with a name that ends in .png")
    }
    let lines = code.lines(isColored: file == nil && console.isColored)
    return Array((lines.joined(separator: "\n") + "\n").utf8)
  }

  private func binary(_ bytes: [UInt8], _ console: Console) throws -> [UInt8] {
    if file == nil, console.columns != nil {
      throw CommandFailure(.usage, "cannot print \(chosenFormat.rawValue) on a terminal", hint: "use --output")
    }
    return bytes
  }

  /// The step's id follows the vehicle's name if the side alone is ambiguous.
  private func title(_ name: PDFText, of step: Step) -> PDFText {
    step.id.description == step.side.rawValue ? name : name + PDFText(ascii: ", \(step.id)")
  }

  /// The vehicle's name, or its UUID if the font lacks a letter of the name.
  private func title(_ vehicle: Vehicle, _ console: Console) -> PDFText {
    if let name = PDFText(vehicle.name) { return name }
    console.note(
      "the font lacks letters of the name \(printable(vehicle.name)); the labels have the UUID instead"
    )
    return PDFText(ascii: vehicle.uuid.description)
  }

  private func json(_ codes: [Content]) -> JSON {
    [
      "codes": .array(
        codes.map {
          [
            "step": $0.step.map { .string($0.description) } ?? .null, "content": .string($0.text),
            "modules": .integer(Int64($0.code.side)),
          ]
        }),
      "file": file.map { .string($0) } ?? .null,
    ]
  }
}

/// The format of a code's picture.
enum CodeFormat: String, CaseIterable, ExpressibleByArgument {
  case terminal, png, svg, pdf

  /// Chosen by the file's extension, in lower case.
  init?(ending: String) {
    switch ending {
    case "txt": self = .terminal
    case "png": self = .png
    case "svg": self = .svg
    case "pdf": self = .pdf
    default: return nil
    }
  }
}

extension QRCode.Level: ExpressibleByArgument {
  package init?(argument: String) { self.init(rawValue: argument.uppercased()) }
}

extension LabelSheet.Paper: ExpressibleByArgument {}
