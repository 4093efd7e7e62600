import FileFormats
import Operator
import StepdConfiguration
import TestSupport
import Testing

private struct Damage {
  var random: SplitMix

  /// Some bytes replaced, removed or doubled, lines swapped or dropped, and pieces of syntax put in.
  mutating func damage(_ text: String) -> [UInt8] {
    let pieces = [
      "[", "]", "[[", "\"", "'''", "\"\"\"", "\\", "\\u0000", "\0", "=", ".", "{", "}", ",", "#", "\r", "é",
      "1e999", "-1", "9223372036854775807", "nan", "inf", "1979-05-27", "true", "\u{FEFF}", "\u{202E}",
    ]
    var bytes = Array(text.utf8)
    for _ in 0...Int.random(in: 0..<4, using: &random) where !bytes.isEmpty {
      let place = Int.random(in: bytes.indices, using: &random)
      switch Int.random(in: 0..<6, using: &random) {
      case 0: bytes[place] = UInt8.random(in: .min ... .max, using: &random)
      case 1: bytes.remove(at: place)
      case 2: bytes.removeSubrange(place..<min(place + 30, bytes.count))
      case 3: bytes.insert(contentsOf: bytes[place..<min(place + 60, bytes.count)], at: place)
      case 4: bytes.removeLast(bytes.count - place)
      default: bytes.insert(contentsOf: Array(pieces.randomElement(using: &random)!.utf8), at: place)
      }
    }
    return bytes
  }
}

@Suite("damaged files")
struct MutationTests {
  @Test("a damaged vehicle file is read or refused in one line, and what was read can be written", arguments: 0..<4)
  func vehicle(seed: UInt64) throws {
    var damage = Damage(random: SplitMix(seed))
    var read = 0
    for _ in 0..<2500 {
      let bytes = damage.damage(Sample.vehicle)
      do throws(ConfigurationError) {
        let file = try VehicleFile(parsing: bytes, path: "vehicle.toml")
        read += 1
        #expect(try VehicleFile(parsing: Array(file.render().utf8), path: "vehicle.toml") == file)
      } catch {
        expectOneLine(error)
      }
    }
    #expect(read > 0 && read < 2500)
  }

  @Test("a damaged controller file is read or refused in one line, and what was read can be written", arguments: 4..<8)
  func controller(seed: UInt64) throws {
    var damage = Damage(random: SplitMix(seed))
    var read = 0
    for _ in 0..<2500 {
      let bytes = damage.damage(Sample.controller)
      do throws(ConfigurationError) {
        let file = try ControllerFile(parsing: bytes, path: "stepd.toml")
        read += 1
        #expect(try ControllerFile(parsing: Array(file.render().utf8), path: "stepd.toml") == file)
      } catch {
        expectOneLine(error)
      }
    }
    #expect(read > 0 && read < 2500)
  }

  private func expectOneLine(_ error: ConfigurationError) {
    let text = error.description
    #expect(text.utf8.count < 500)
    #expect(!text.unicodeScalars.contains { $0.value < 0x20 || (0x7F...0x9F).contains($0.value) }, "\(text)")
  }
}
