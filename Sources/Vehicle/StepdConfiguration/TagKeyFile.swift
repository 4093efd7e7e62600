package import Domain
import Encoding
package import FileFormats
package import StepProtocol
import SystemIO

/// `tags.json`: the tags whose messages the controller verifies, each with its keys. Only its owner may read it.
///
/// An array of `{"uid":"04A1B2C3D4E5F6","step":"left","meta_read_key":"…","file_read_key":"…"}`, keys as 32
/// hexadecimal digits.
package struct TagKeyFile: Equatable, Sendable {
  package struct Tag: Equatable, Sendable {
    package let uid: TagUID
    package let step: StepID
    package let keys: DynamicTag.Keys

    package init(uid: TagUID, step: StepID, keys: DynamicTag.Keys) {
      self.uid = uid
      self.step = step
      self.keys = keys
    }
  }

  /// More tags than one vehicle needs. The journal keeps a counter for each.
  package static let maximumCount = 256

  package let path: String
  /// Each UID occurs once.
  package private(set) var tags: [Tag] = []

  /// A file without tags.
  package init(path: String) { self.path = path }

  package init(reading path: String) throws {
    try KeyFile.checkPrivate(path)
    try self.init(parsing: Files.readRegular(path, limit: 65536), path: path)
  }

  /// No error repeats any part of a key.
  package init(parsing bytes: [UInt8], path: String) throws(ConfigurationError) {
    self.path = path
    let value: JSON
    do { value = try JSON(parsing: bytes) } catch {
      throw ConfigurationError(path, "\(error)")
    }
    guard let items = value.array, items.count <= Self.maximumCount else {
      throw ConfigurationError(path, "expected an array of at most \(Self.maximumCount) tags")
    }
    for (index, item) in items.enumerated() {
      guard let tag = Tag(item) else {
        throw ConfigurationError(
          path,
          "tag \(index + 1): expected a uid, a step, and meta_read_key and file_read_key of 32 hexadecimal digits")
      }
      guard !tags.contains(where: { $0.uid == tag.uid }) else {
        throw ConfigurationError(path, "tag \(index + 1): \(tag.uid) is there twice")
      }
      tags.append(tag)
    }
  }

  /// Adds a tag, in place of one with the same UID.
  package mutating func set(_ tag: Tag) {
    tags.removeAll { $0.uid == tag.uid }
    tags.append(tag)
  }

  /// The file's text: one tag per line.
  package func render() -> String {
    tags.isEmpty ? "[]\n" : "[\n" + tags.map { "  \($0.json.text)" }.joined(separator: ",\n") + "\n]\n"
  }
}

extension TagKeyFile.Tag {
  fileprivate init?(_ value: JSON) {
    guard value.object?.count == 4, let uid = value["uid"]?.string.flatMap({ TagUID($0) }),
      let step = value["step"]?.string.flatMap({ StepID($0) }),
      let metaRead = value["meta_read_key"]?.string.flatMap({ hexadecimal($0) }),
      let fileRead = value["file_read_key"]?.string.flatMap({ hexadecimal($0) }),
      let keys = DynamicTag.Keys(metaRead: metaRead, fileRead: fileRead)
    else { return nil }
    self.init(uid: uid, step: step, keys: keys)
  }

  fileprivate var json: JSON {
    [
      "uid": .string(uid.description), "step": .string(step.description),
      "meta_read_key": .string(hexadecimal(keys.metaRead)), "file_read_key": .string(hexadecimal(keys.fileRead)),
    ]
  }
}
