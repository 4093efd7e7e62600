extension QRCode {
  /// A drawing (SVG 1.1) in true size: one path, on white with the quiet zone.
  ///
  /// - Parameter size: millimetres, of the code without its quiet zone.
  package func svg(size: Double) -> String {
    let all = side + 2 * Self.quietZone
    let millimetres = decimal(size * Double(all) / Double(side))
    let path = runs.map { "M\($0.columns.lowerBound) \($0.row)h\($0.columns.count)v1h-\($0.columns.count)z" }.joined()
    return """
      <svg xmlns="http://www.w3.org/2000/svg" version="1.1" width="\(millimetres)mm" height="\(millimetres)mm" \
      viewBox="\(-Self.quietZone) \(-Self.quietZone) \(all) \(all)" shape-rendering="crispEdges">
      <rect x="\(-Self.quietZone)" y="\(-Self.quietZone)" width="\(all)" height="\(all)" fill="#fff"/>
      <path d="\(path)" fill="#000"/>
      </svg>

      """
  }
}

/// A number with at most three decimals, and no exponent, as drawings are written in.
func decimal(_ value: Double) -> String {
  let thousandths = Int((value * 1000).rounded())
  let (whole, rest) = abs(thousandths).quotientAndRemainder(dividingBy: 1000)
  var digits = String(1000 + rest).dropFirst()
  while digits.last == "0" { digits.removeLast() }
  return (thousandths < 0 ? "-" : "") + String(whole) + (digits.isEmpty ? "" : "." + digits)
}
