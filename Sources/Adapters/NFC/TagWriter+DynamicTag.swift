import Tags
import Domain

extension TagWriter {
  /// Sets up an NTAG 424 DNA as it comes from the factory.
  ///
  /// What is done and what is not, the tag says whenever it is looked at, and the key that may change everything is the
  /// last to change: a tag that was taken away in the middle is completed by doing it again with the same keys.
  ///
  /// - Parameters:
  ///   - isRehearsal: whether it only finds out what would be done, and whether that is possible.
  ///   - isGenuine: whether a URI that was read is one that the tag makes with these keys.
  /// - Returns: how many parts of the setup were done, or would be; 0 for a tag that was set up before.
  /// - Throws: also for a tag that has other keys, which nobody can change without them.
  package func setUp(
    _ setup: DynamicTagSetup, isRehearsal: Bool = false, isGenuine: (String) -> Bool
  ) throws(NFCError) -> Int {
    guard target.speaksISODEP else { throw Self.isNoDynamicTag }
    // NT4H2421Gx 8.2.1: a random one has four bytes.
    guard target.uid.bytes.count == 7 else {
      throw .unsupported("the tag gives a random UID, by which no vehicle can know it")
    }
    var done = 0
    // Of all parts, each answered as if it had been done. That the tag did not answer says nothing of its keys.
    var fruitless = 0
    return try persevere { _ throws(NFCError) in
      while true {
        // Anew each time: reading selects the application, which ends the tag's session.
        let tag = NTAG424Tag(Type4Session(reader))
        let contents = try tag.session.read()
        guard try tag.isNTAG424() else { throw Self.isNoDynamicTag }
        let parts = try tag.missing(setup, contents, isGenuine)
        if isRehearsal || parts.isEmpty { return isRehearsal ? parts.count : done }
        guard fruitless < 3 else { throw Self.hasOtherKeys }
        for (index, part) in parts.enumerated() {
          progress(.written(index, of: parts.count))
          try tag.perform(part, of: setup, contents)
          done += 1
        }
        fruitless += 1
      }
    }
  }

  private static let isNoDynamicTag = NFCError.unsupported(
    "this is no NTAG 424 DNA: other tags have no secure dynamic messages")
  static let hasOtherKeys = NFCError.unsupported(
    "the tag was set up before, for something else or with other keys, which are needed to change it")
}
