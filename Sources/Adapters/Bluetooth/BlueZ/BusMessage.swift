import CSystemd

/// A message on the bus, written or read from beginning to end (sd_bus_message_append_basic(3),
/// sd_bus_message_read_basic(3)). Types are those of the D-Bus specification, "Type System".
final class BusMessage {
  /// The content is not as expected.
  struct Malformed: Error {}

  let pointer: OpaquePointer
  private let library: SDBus

  /// Takes over a reference.
  init(adopting pointer: OpaquePointer, _ library: SDBus) {
    self.pointer = pointer
    self.library = library
  }

  deinit { _ = library.messageUnref(pointer) }

  // MARK: - About it

  var path: String { library.messageGetPath(pointer).map { String(cString: $0) } ?? "" }

  /// The unique name of the sender, which the bus guarantees.
  var sender: String { library.messageGetSender(pointer).map { String(cString: $0) } ?? "" }

  func isSignal(_ interface: String, _ member: String) -> Bool {
    library.messageIsSignal(pointer, interface, member) > 0
  }

  var isCall: Bool { library.messageIsMethodCall(pointer, nil, nil) > 0 }

  func isCall(_ interface: String, _ member: String) -> Bool {
    library.messageIsMethodCall(pointer, interface, member) > 0
  }

  /// The number of the call that this message answers.
  var replyCookie: UInt64? {
    var cookie: UInt64 = 0
    return library.messageGetReplyCookie(pointer, &cookie) >= 0 ? cookie : nil
  }

  /// The error in the message, if it is an error.
  var failure: BusError? {
    guard let error = library.messageGetError(pointer)?.pointee, let name = error.name else { return nil }
    return .failed(name: String(cString: name), message: error.message.map { String(cString: $0) } ?? "")
  }

  // MARK: - Writing

  // Strings are passed directly, other values by pointer.
  func append(_ text: String) { text.withCString { append("s", $0) } }

  func append(path: String) { path.withCString { append("o", $0) } }

  func append(_ value: UInt32) { withUnsafePointer(to: value) { append("u", $0) } }

  func append(_ value: Int16) { withUnsafePointer(to: value) { append("n", $0) } }

  func append(_ value: Bool) { withUnsafePointer(to: Int32(value ? 1 : 0)) { append("b", $0) } }

  /// Appends a dictionary from names to values; each value appends a variant.
  func append(_ entries: [(String, (BusMessage) -> Void)]) {
    append("a", of: "{sv}") {
      for (key, appendValue) in entries {
        append("e", of: "sv") {
          append(key)
          appendValue(self)
        }
      }
    }
  }

  /// Appends an array, a dictionary entry or a variant.
  func append(_ type: Unicode.Scalar, of contents: String, _ body: () -> Void) {
    expect(library.messageOpenContainer(pointer, CChar(type.value), contents))
    body()
    expect(library.messageCloseContainer(pointer))
  }

  private func append(_ type: Unicode.Scalar, _ value: UnsafeRawPointer) {
    expect(library.messageAppendBasic(pointer, CChar(type.value), value))
  }

  /// Building a message fails only for a wrong type, which would be a mistake in this program, or for lack of memory.
  private func expect(_ result: Int32) { precondition(result >= 0, "sd-bus: \(result)") }

  // MARK: - Reading

  /// A string or an object path.
  func string(_ type: Unicode.Scalar = "s") throws(Malformed) -> String {
    var text: UnsafePointer<CChar>?
    guard library.messageReadBasic(pointer, CChar(type.value), &text) > 0, let text else { throw Malformed() }
    return String(cString: text)
  }

  func strings() throws(Malformed) -> [String] {
    var texts: [String] = []
    guard try enter("a", "s") else { throw Malformed() }
    var text: UnsafePointer<CChar>?
    while library.messageReadBasic(pointer, CChar(UInt8(ascii: "s")), &text) > 0, let found = text {
      texts.append(String(cString: found))
    }
    try exit()
    return texts
  }

  func int16() throws(Malformed) -> Int16 {
    var value: Int16 = 0
    guard library.messageReadBasic(pointer, CChar(UInt8(ascii: "n")), &value) > 0 else { throw Malformed() }
    return value
  }

  func uint16() throws(Malformed) -> UInt16 {
    var value: UInt16 = 0
    guard library.messageReadBasic(pointer, CChar(UInt8(ascii: "q")), &value) > 0 else { throw Malformed() }
    return value
  }

  func bytes() throws(Malformed) -> [UInt8] {
    var start: UnsafeRawPointer?
    var count = 0
    guard library.messageReadArray(pointer, CChar(UInt8(ascii: "y")), &start, &count) > 0 else { throw Malformed() }
    return Array(UnsafeRawBufferPointer(start: start, count: count))
  }

  func skip(_ types: String) throws(Malformed) {
    guard library.messageSkip(pointer, types) > 0 else { throw Malformed() }
  }

  /// The content of a variant, which must have this type.
  func variant<Value>(
    _ type: String, _ body: () throws(Malformed) -> Value
  ) throws(Malformed) -> Value {
    guard try enter("v", type) else { throw Malformed() }
    let value = try body()
    try exit()
    return value
  }

  /// Each entry of a dictionary; `body` reads key and value.
  func entries(_ types: String, _ body: () throws(Malformed) -> Void) throws(Malformed) {
    guard try enter("a", "{\(types)}") else { throw Malformed() }
    while try enter("e", types) {
      try body()
      try exit()
    }
    try exit()
  }

  /// - Returns: false at the end of the container that is being read.
  private func enter(_ type: Unicode.Scalar, _ contents: String) throws(Malformed) -> Bool {
    let result = library.messageEnterContainer(pointer, CChar(type.value), contents)
    guard result >= 0 else { throw Malformed() }
    return result > 0
  }

  private func exit() throws(Malformed) {
    guard library.messageExitContainer(pointer) >= 0 else { throw Malformed() }
  }
}
