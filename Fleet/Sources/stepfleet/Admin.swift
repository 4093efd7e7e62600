import ArgumentParser
import Domain
import Encoding
import Foundation

/// The server that a command talks to.
struct ServerOption: ParsableArguments {
  @Option(help: "The server's folder; else what STEPFLEET_DIR says, or /var/lib/stepfleet.")
  var dir: String?

  var folder: ServerFolder {
    ServerFolder(dir ?? ProcessInfo.processInfo.environment["STEPFLEET_DIR"] ?? "/var/lib/stepfleet")
  }

  /// Sends a request to the server that serves the folder.
  ///
  /// - Returns: the server's answer.
  func ask(_ method: String, _ path: String, _ body: JSON? = nil) throws -> JSON {
    try Admin(folder).ask(method, path, body)
  }
}

/// One request over the operator's socket: HTTP/1.1, one connection per request.
struct Admin {
  let folder: ServerFolder

  init(_ folder: ServerFolder) { self.folder = folder }

  /// - Parameter port: the port of a server that shares the folder with others.
  static func socket(_ port: Int? = nil) -> String { port.map { "run/\($0).sock" } ?? "run/admin.sock" }

  /// Throws if the path is longer than SwiftNIO allows; unix(7) allows 107 bytes.
  static func checkLength(_ path: String) throws(ServerError) {
    guard path.utf8.count <= 103 else {
      throw .file(path, "a socket's path has at most 103 bytes; use a folder with a shorter path")
    }
  }

  func ask(_ method: String, _ path: String, _ body: JSON?) throws(ServerError) -> JSON {
    _ = try folder.settings()
    let content = body.map { Array($0.text.utf8) } ?? []
    let head =
      "\(method) \(path) HTTP/1.1\r\nHost: admin\r\nConnection: close\r\nContent-Type: application/json\r\n"
      + "Content-Length: \(content.count)\r\n\r\n"
    let answer = try exchange(Array(head.utf8) + content)
    guard let end = answer.firstRange(of: Array("\r\n\r\n".utf8)),
      let status = Int(String(decoding: answer.dropFirst(9).prefix(3), as: UTF8.self))
    else { throw .refused("the server's answer is not understood") }
    let text = answer[end.upperBound...]
    if status == 204 { return [:] }
    guard let json = try? JSON(parsing: text) else { throw .refused("the server's answer is not understood") }
    guard (200..<300).contains(status) else {
      throw .refused(json["detail"]?.string ?? "the server answered \(status)")
    }
    return json
  }

  private func exchange(_ request: [UInt8]) throws(ServerError) -> [UInt8] {
    let path = folder.path(Self.socket())
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    let bytes = Array(path.utf8)
    try Self.checkLength(path)
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: bytes) }
    let connection = Foundation.socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
    guard connection >= 0 else { throw .file(path, String(cString: strerror(errno))) }
    defer { close(connection) }
    let length = socklen_t(MemoryLayout<sockaddr_un>.size)
    let isConnected = withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { connect(connection, $0, length) == 0 }
    }
    guard isConnected else {
      if errno == ENOENT || errno == ECONNREFUSED { throw .notServed(folder.path) }
      if errno == EACCES { throw .denied(path) }
      throw .file(path, String(cString: strerror(errno)))
    }
    var rest = request[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { send(connection, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
      guard count > 0 else { throw .file(path, String(cString: strerror(errno))) }
      rest = rest.dropFirst(count)
    }
    var answer: [UInt8] = []
    var part = [UInt8](repeating: 0, count: 65_536)
    while true {
      let count = recv(connection, &part, part.count, 0)
      guard count >= 0 else { throw .file(path, String(cString: strerror(errno))) }
      if count == 0 { return answer }
      answer += part[..<count]
    }
  }
}

/// Escapes a text for use as one part of a path.
func escaped(_ text: String) -> String {
  text.addingPercentEncoding(withAllowedCharacters: .alphanumerics.union(.init(charactersIn: "-._~"))) ?? text
}

/// Prints rows as a spreadsheet reads them (RFC 4180), with the names of the columns first.
func printCSV(_ rows: [JSON], _ columns: [String]) {
  func cell(_ value: JSON?) -> String {
    guard var text = value?.string else { return value == .null ? "" : value?.text ?? "" }
    // A spreadsheet would take a text that begins so for a formula, and a rider chooses an address.
    if let first = text.unicodeScalars.first, "=+-@\t\r".unicodeScalars.contains(first) { text = "'" + text }
    guard text.utf8.contains(where: { [0x22, 0x2C, 0x0A, 0x0D].contains($0) }) else { return text }
    return "\"\(text.replacing("\"", with: "\"\""))\""
  }
  for line in [columns] + rows.map({ row in columns.map { cell(row[$0]) } }) {
    print(line.joined(separator: ","), terminator: "\r\n")
  }
}

/// Prints rows one below the other, with the texts of these members.
///
/// - Parameter shown: how people read a member of that name and text.
func printTable(_ rows: [JSON], _ columns: [String], shown: (String, String) -> String = { $1 }) {
  for line in tableLines(rows, columns, shown: shown) { print(line) }
}

/// The lines that `printTable` prints.
func tableLines(_ rows: [JSON], _ columns: [String], shown: (String, String) -> String = { $1 }) -> [String] {
  let texts =
    [columns]
    + rows.map { row in
      columns.map { name in
        switch row[name] {
        case .string(let text)?: printable(shown(name, text))
        case .integer(let number)?: "\(number)"
        case .null?: "-"
        case .array(let items)?: items.map { $0.string ?? $0["id"]?.string ?? $0.text }.joined(separator: ",")
        case let value?: value.text
        case nil: "-"
        }
      }
    }
  let widths = columns.indices.map { column in texts.map { $0[column].count }.max() ?? 0 }
  return texts.map { row in
    let cells = zip(row, widths).map { $0 + String(repeating: " ", count: $1 - $0.count) }
    var line = cells.joined(separator: "  ")
    while line.last == " " { line.removeLast() }
    return line
  }
}
