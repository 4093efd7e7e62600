import ArgumentParser
import CodeDrawing
import Domain
import SystemIO
import Terminal

/// Where a text goes that another computer is to read. No secret is in it.
struct HandoverOptions: ParsableArguments {
  @Option(
    name: [.customShort("o"), .customLong("output")],
    help: ArgumentHelp(
      "Write into this file, as a QR code if it ends in .png or .svg, or - (default: standard output).",
      valueName: "file"),
    completion: .file())
  var outputName: String?

  @Flag(help: "Draw it as a QR code on the terminal.")
  var drawn = false

  func validate() throws {
    guard !drawn || file == nil else { throw ValidationError("--drawn and --output exclude each other.") }
  }

  /// Nil for standard output.
  var file: String? { outputName == "-" ? nil : outputName }

  /// Writes the text into the file, if there is one.
  func write(_ text: String) throws {
    guard let file else { return }
    let content: [UInt8] =
      if file.hasSuffix(".png") {
        try code(text).png(size: 60)
      } else if file.hasSuffix(".svg") { Array(try code(text).svg(size: 60).utf8) } else { Array((text + "\n").utf8) }
    try Files.replace(file, with: content, mode: 0o644)
  }

  /// Writes it, or prints it.
  func put(_ text: String, _ console: Console) throws {
    if let file {
      try write(text)
      return try console.result("wrote \(file)")
    }
    guard drawn else { return try console.result(text) }
    let code = try code(text)
    if let columns = console.columns, columns < code.columns {
      throw CommandFailure(
        .usage, "the code needs \(code.columns) columns, and the terminal has \(columns)",
        hint: "use --output with a name that ends in .png")
    }
    try console.result(code.lines(isColored: console.isColored).joined(separator: "\n"))
  }

  private func code(_ text: String) throws -> QRCode {
    do { return try QRCode(Array(text.utf8), level: .low) } catch {
      throw CommandFailure(
        error.exitStatus, error.description,
        hint: "use --output with a name for a text file, or give the vehicle a shorter name, topic or host")
    }
  }
}
