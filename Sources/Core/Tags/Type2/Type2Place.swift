/// Where in the data area of a tag a message goes.
struct Type2Place {
  /// The addresses that it may use, beginning with its tag's.
  private(set) var addresses: [Int] = []
  /// How many bytes of other blocks follow, which stay as they are.
  private(set) var kept = 0
  /// The dynamic lock bytes, if a Lock Control block says where they are.
  private(set) var lockBytes: Range<Int>?

  init(_ memory: Type2Memory, end: Int, isFormatted: Bool, replacingAll: Bool) throws(Type2Stop) {
    var walker = Type2Walker(memory: memory, end: end)
    // What stands on a tag that is not formatted are no blocks.
    guard isFormatted else {
      addresses = Array(walker.addresses(from: 16))
      return
    }
    var start = 16
    var message: Type2TLV?
    do throws(Type2Stop) {
      while message == nil, let block = try walker.next() {
        switch block.tag {
        case Type2TLV.Tag.message:
          message = block
          if !replacingAll { start = block.start }
        case Type2TLV.Tag.lockControl, Type2TLV.Tag.memoryControl:
          if block.tag == Type2TLV.Tag.lockControl { lockBytes = walker.reserved.last }
          start = walker.position
        default:
          if !replacingAll { start = walker.position }
        }
      }
      if message == nil, !replacingAll { start = walker.position }
    } catch {
      // Rubbish is no reason to give up, if it is to go.
      guard replacingAll, case .failed = error else { throw error }
    }
    addresses = Array(walker.addresses(from: start))
    if message != nil, !replacingAll, let next = try Self.blocks(after: walker) {
      let free = addresses.prefix { $0 < next }.count
      kept = addresses.count - free
      addresses.removeLast(kept)
    }
  }

  /// Where the first of the blocks behind the message begins; nil if there are none.
  ///
  /// Behind a message that was torn stand its remains, not blocks. They are told by tags that nobody defined: a record
  /// begins with 80h or more.
  private static func blocks(after walker: Type2Walker) throws(Type2Stop) -> Int? {
    var walker = walker
    var first: Int?
    do throws(Type2Stop) {
      while let block = try walker.next() {
        guard block.tag == Type2TLV.Tag.proprietary || block.tag <= Type2TLV.Tag.message else { return nil }
        first = first ?? block.start
      }
    } catch {
      guard case .failed = error else { throw error }
      return nil
    }
    return first
  }
}
