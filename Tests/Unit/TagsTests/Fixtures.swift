import Encoding
import Foundation
import NDEF
import Tags
import TestSupport

/// Files below `Tests/Fixtures`.
enum Fixtures {
  static let folder = URL(filePath: Repository.fixture(""))

  static func json(_ path: String) -> JSON {
    try! JSON(parsing: Data(contentsOf: folder.appending(path: path)))
  }

  /// A tag's memory by name.
  static func tag(_ name: String) -> [UInt8] {
    try! Array(Data(contentsOf: folder.appending(path: "tags/\(name).bin")))
  }
}

/// Bytes in hexadecimal, spaces ignored.
func hex(_ text: String) -> [UInt8] { hexadecimal(text.filter { $0 != " " })! }

/// A message with one text, `count` bytes long in all.
func message(bytes count: Int, _ letter: Character = "a") -> NDEFMessage {
  let overhead = NDEFMessage([NDEFText("").record]).bytes.count + (count >= 7 + 256 - 3 + 3 ? 3 : 0)
  let message = NDEFMessage([NDEFText(String(repeating: letter, count: count - overhead)).record])
  precondition(message.bytes.count == count)
  return message
}

/// What is found out from a whole memory.
func whole<Value>(
  _ memory: Type2Memory, _ body: (Type2Memory) throws(NDEFError) -> Type2Step<Value>
) throws -> Value {
  switch try body(memory) {
  case .done(let value): return value
  case .read(let pages): throw MissingPages(pages: pages)
  }
}

struct MissingPages: Error, Equatable { let pages: Range<Int> }

func read(_ memory: Type2Memory) throws -> Type2Layout {
  try whole(memory) { memory throws(NDEFError) in try Type2Layout.read(memory) }
}

func write(
  _ message: NDEFMessage, to memory: Type2Memory, chip: Type2Chip?, replacingAll: Bool = false
) throws -> Type2Plan {
  try whole(memory) { memory throws(NDEFError) in
    try Type2Plan.write(message, to: memory, chip: chip, replacingAll: replacingAll)
  }
}

func lock(_ memory: Type2Memory, chip: Type2Chip?) throws -> Type2Plan {
  try whole(memory) { memory throws(NDEFError) in try Type2Plan.lock(memory, chip: chip) }
}
