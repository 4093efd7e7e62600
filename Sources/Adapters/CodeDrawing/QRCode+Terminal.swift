extension QRCode {
  /// How many columns of a terminal it takes.
  package var columns: Int { side + 2 * Self.quietZone }

  /// The code in half blocks, two modules above each other in a character, with its quiet zone.
  ///
  /// - Parameter isColored: black on white by attributes (ECMA-48, 8.3.117), whatever the terminal's own colors are.
  ///   Without them the blocks are the light modules, which is right where the background is dark.
  package func lines(isColored: Bool) -> [String] {
    let all = -Self.quietZone..<side + Self.quietZone
    return stride(from: all.lowerBound, to: all.upperBound, by: 2).map { row in
      let blocks = all.map { column in
        // Below the last row of an odd number there is nothing, which is as good as light.
        let isDark = (self[row: row, column: column], self[row: row + 1, column: column])
        return switch isColored ? isDark : (!isDark.0, !isDark.1 && row + 1 < all.upperBound) {
        case (true, true): "█"
        case (true, false): "▀"
        case (false, true): "▄"
        case (false, false): " "
        }
      }.joined()
      // Of the 256 colors, 16 is black and 231 white in every theme.
      return isColored ? "\u{1B}[38;5;16;48;5;231m\(blocks)\u{1B}[0m" : blocks
    }
  }
}
