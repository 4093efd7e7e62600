import NDEF

/// The pages of a Type 2 tag that were read, four bytes each.
///
/// A page number is one byte, so there are 256 pages. More memory is in further sectors (Type 2 Tag 1.1, 5.3), which
/// the supported chips do not have.
package struct Type2Memory: Hashable, Sendable {
  package static let pageSize = 4
  package static let maximumPages = 256

  private var pages: [[UInt8]?] = []
  /// The first page that the tag refuses to read; nil if none was found.
  package var refusedFrom: Int?
  /// Whether a password is the reason, as it is on known chips.
  package var hasPassword = true

  /// - Parameter prefix: whole pages from page 0 on.
  package init(_ prefix: [UInt8] = []) { insert(prefix, at: 0) }

  /// Nil if the page was not read.
  package subscript(page: Int) -> [UInt8]? {
    get { pages.indices.contains(page) ? pages[page] : nil }
    set {
      precondition((0..<Self.maximumPages).contains(page) && newValue?.count ?? Self.pageSize == Self.pageSize)
      if page >= pages.count { pages += Array(repeating: nil, count: page + 1 - pages.count) }
      pages[page] = newValue
    }
  }

  /// Takes a tag's answer to READ or FAST_READ. An incomplete page at the end is dropped.
  package mutating func insert(_ bytes: some Collection<UInt8>, at page: Int) {
    let bytes = Array(bytes)
    for index in 0..<bytes.count / Self.pageSize where page + index < Self.maximumPages {
      self[page + index] = Array(bytes[index * Self.pageSize..<(index + 1) * Self.pageSize])
    }
  }
}

/// The next step towards a result that depends on a tag's memory.
package enum Type2Step<Value> {
  /// Read at least these pages. More pages do no harm: one command reads several.
  case read(pages: Range<Int>)
  case done(Value)
}

extension Type2Step: Sendable where Value: Sendable {}
extension Type2Step: Equatable where Value: Equatable {}

/// Why a function over the memory stopped early.
enum Type2Stop: Error {
  case needs(pages: Range<Int>)
  case failed(NDEFError)
}

extension Type2Memory {
  func page(_ page: Int) throws(Type2Stop) -> [UInt8] {
    try checkReadable(page)
    guard let bytes = self[page] else { throw .needs(pages: page..<page + 1) }
    return bytes
  }

  private func checkReadable(_ page: Int) throws(Type2Stop) {
    guard let refusedFrom, page >= refusedFrom else { return }
    throw .failed(hasPassword ? .passwordProtected(page: refusedFrom) : .pageRefused(refusedFrom))
  }

  func byte(_ address: Int) throws(Type2Stop) -> UInt8 {
    try page(address / Self.pageSize)[address % Self.pageSize]
  }

  /// The bytes at ascending addresses. All missing pages are requested at once, together with the gaps between them.
  func bytes(_ addresses: some Collection<Int>) throws(Type2Stop) -> [UInt8] {
    let missing = addresses.lazy.map { $0 / Self.pageSize }.filter { self[$0] == nil }
    if let first = missing.first, let last = missing.max() {
      try checkReadable(last)
      throw .needs(pages: first..<last + 1)
    }
    var bytes: [UInt8] = []
    for address in addresses { bytes.append(try byte(address)) }
    return bytes
  }

  /// Runs `body`, and returns the pages that it misses.
  static func step<Value>(_ body: () throws(Type2Stop) -> Value) throws(NDEFError) -> Type2Step<Value> {
    do {
      return .done(try body())
    } catch {
      switch error {
      case .needs(let pages): return .read(pages: pages)
      case .failed(let error): throw error
      }
    }
  }
}

/// Turns an error of the tag into a `Type2Stop`.
func stopping<Value>(_ body: () throws(NDEFError) -> Value) throws(Type2Stop) -> Value {
  do { return try body() } catch { throw .failed(error) }
}
