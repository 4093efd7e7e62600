package import ArgumentParser
import CodeDrawing
import Domain
import StepProtocol
import SystemIO
package import Terminal

/// Writes a text for another computer. The text contains no secret.
package struct HandoverOptions: ParsableArguments {
  package init() {}

  @Option(
    name: [.customShort("o"), .customLong("output")],
    help: ArgumentHelp(
      "Write into this file, as QR codes if it ends in .png or .svg, or - (default: standard output).",
      valueName: "file"),
    completion: .file())
  package var outputName: String?

  @Flag(help: "Draw it as a QR code on the terminal.")
  package var drawn = false

  package func validate() throws {
    guard !drawn || file == nil else { throw ValidationError("--drawn and --output exclude each other.") }
  }

  /// Nil for standard output.
  package var file: String? { outputName == "-" ? nil : outputName }

  /// Writes the text into the file, if there is one.
  ///
  /// - Returns: the files written. A text that is too long for one code needs several, `NAME-1.png` and so on.
  @discardableResult
  package func write(_ text: String) throws -> [String] {
    guard let file else { return [] }
    let (isPNG, isSVG) = (file.hasSuffix(".png"), file.hasSuffix(".svg"))
    guard isPNG || isSVG else {
      try Files.deliver(Array("\(text)\n".utf8), to: file, mode: 0o644)
      return [file]
    }
    let codes = try codes(text)
    let (stem, end) = (file.dropLast(4), file.suffix(4))
    let names = codes.count == 1 ? [file] : codes.indices.map { "\(stem)-\($0 + 1)\(end)" }
    for (name, code) in zip(names, codes) {
      let content = isPNG ? code.png(size: 60) : Array(code.svg(size: 60).utf8)
      try Files.deliver(content, to: name, mode: 0o644)
    }
    return names
  }

  /// Writes the text to the file, or prints it.
  package func put(_ text: String, _ console: Console) throws {
    if file != nil {
      return try console.result("wrote \(write(text).joined(separator: ", "))")
    }
    guard drawn else { return try console.result(text) }
    let codes = try codes(text)
    if let columns = console.columns, let widest = codes.map(\.columns).max(), columns < widest {
      throw CommandFailure(
        .usage, "the code needs \(widest) columns, and the terminal has \(columns)",
        hint: "use --output with a name that ends in .png")
    }
    for (index, code) in codes.enumerated() {
      if codes.count > 1 { try console.result("code \(index + 1) of \(codes.count)") }
      try console.result(code.lines(isColored: console.isColored).joined(separator: "\n"))
    }
  }

  /// One code, or as many as the text needs.
  private func codes(_ text: String) throws -> [QRCode] {
    do throws(QRCode.Failure) { return [try QRCode(Array(text.utf8), level: .low)] } catch {
      switch error {
      case .tooLong: return try CodeParts.split(text).map { try QRCode(Array($0.utf8), level: .low) }
      case .empty, .outOfMemory: throw error
      }
    }
  }
}
