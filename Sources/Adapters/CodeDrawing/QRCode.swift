import CQREncode
package import Domain
import Glibc

/// A QR code (ISO/IEC 18004): a square of dark and light modules.
package struct QRCode: Equatable, Sendable {
  /// The share of a code that may be unreadable: about 7, 15, 25 or 30 percent.
  package enum Level: String, CaseIterable, Sendable {
    case low = "L"
    case medium = "M"
    case quartile = "Q"
    case high = "H"
  }

  package enum Failure: Domain.Failure, Equatable {
    case empty
    /// More bytes than the largest code can hold at this level.
    case tooLong(bytes: Int, level: Level)
    case outOfMemory

    package var exitStatus: ExitStatus { .usage }

    package var description: String {
      switch self {
      case .empty: "there is nothing to put into a code"
      case .tooLong(let bytes, let level):
        "\(bytes) bytes are more than a code holds at level \(level.rawValue)"
          + (level == .low ? "" : "; use a lower one")
      case .outOfMemory: "there is not enough memory to make a code"
      }
    }
  }

  /// The width of the light margin that a code needs, in modules (ISO/IEC 18004, 9.1).
  package static let quietZone = 4

  /// The number of modules per side: 21 to 177.
  package let side: Int
  /// Row by row from the top left; true for dark.
  private let modules: [Bool]

  /// The smallest code that holds the bytes.
  package init(_ bytes: [UInt8], level: Level) throws(Failure) {
    guard !bytes.isEmpty else { throw .empty }
    // https://fukuchi.org/works/qrencode/manual/qrencode_8h.html: version 0 is the smallest that holds them.
    guard let code = QRcode_encodeData(Int32(bytes.count), bytes, 0, level.number) else {
      throw errno == ERANGE ? .tooLong(bytes: bytes.count, level: level) : .outOfMemory
    }
    defer { QRcode_free(code) }
    side = Int(code.pointee.width)
    // The lowest bit says whether a module is dark; the others describe its function.
    modules = UnsafeBufferPointer(start: code.pointee.data, count: side * side).map { $0 & 1 == 1 }
  }

  /// Whether a module is dark; modules outside the code are light.
  package subscript(row row: Int, column column: Int) -> Bool {
    (0..<side).contains(row) && (0..<side).contains(column) && modules[row * side + column]
  }

  /// All dark modules, as runs of neighbours in a row, from the top left.
  package var runs: [(row: Int, columns: Range<Int>)] {
    var runs: [(Int, Range<Int>)] = []
    for row in 0..<side {
      var start: Int?
      for column in 0...side {
        if self[row: row, column: column] {
          start = start ?? column
        } else if let first = start {
          runs.append((row, first..<column))
          start = nil
        }
      }
    }
    return runs
  }
}

extension QRCode.Level {
  fileprivate var number: QRecLevel {
    switch self {
    case .low: QR_ECLEVEL_L
    case .medium: QR_ECLEVEL_M
    case .quartile: QR_ECLEVEL_Q
    case .high: QR_ECLEVEL_H
    }
  }
}
