package import Encoding
import HTTPTypes
package import Hummingbird
import NIOCore

/// The JSON object in a request's body. Its members are read by name. Unknown members are refused, so that a misspelled
/// name is not ignored.
package struct Body: Sendable {
  /// The body's bytes as received.
  package let bytes: [UInt8]
  private let members: [JSON.Member]

  /// Reads the body.
  ///
  /// - Parameter names: all allowed members.
  /// - Throws: `Problem`: 413 if the body is too large, 408 if it does not arrive in time, 415 or 400 if it is not a
  ///   JSON object.
  package init(of request: Request, members names: [String]) async throws {
    let type = Self.mediaType(of: request)
    bytes = try await Self.bytes(of: request)
    guard !bytes.isEmpty || !names.isEmpty else {
      members = []
      return
    }
    guard type == "application/json" else {
      throw Problem(.unsupportedMediaType, "media_type", "the body has to be application/json")
    }
    do {
      guard let members = try JSON(parsing: bytes).object else { throw Problem.malformed("the body is no JSON object") }
      self.members = members
    } catch let error as JSON.SyntaxError {
      throw Problem.malformed("the body is \(error)")
    }
    if let unknown = members.first(where: { member in !names.contains { identical($0, member.name) } }) {
      throw Problem.malformed("the body has a member that is not known: \(unknown.name.prefix(64))")
    }
  }

  /// A body of any type, of at most `FleetContext.maximumBody` bytes. It must arrive within ten seconds.
  package static func bytes(of request: Request) async throws -> [UInt8] {
    if let length = request.headers[.contentLength].flatMap({ Int($0) }), length > FleetContext.maximumBody {
      throw tooLarge
    }
    return try await withThrowingTaskGroup(of: [UInt8].self) { group in
      group.addTask {
        var bytes: [UInt8] = []
        do {
          for try await part in request.body {
            guard bytes.count + part.readableBytes <= FleetContext.maximumBody else { throw tooLarge }
            bytes += part.readableBytesView
          }
        } catch  where !(error is Problem || error is CancellationError) {
          // Invalid chunks, or a connection that ends: not a failure of the server.
          throw broken
        }
        return bytes
      }
      group.addTask {
        try await Task.sleep(for: .seconds(10))
        throw Problem(.requestTimeout, "too_slow", "the body did not arrive in time", headers: [.connection: "close"])
      }
      defer { group.cancelAll() }
      return try await group.next() ?? []
    }
  }

  /// The media type without parameters, in lower case (RFC 9110 8.3.1: spaces may precede the semicolon).
  package static func mediaType(of request: Request) -> String? {
    request.headers[.contentType]?.prefix { $0 != ";" && $0 != " " && $0 != "\t" }.lowercased()
  }

  private static let broken = Problem(
    .badRequest, "malformed", "the body did not arrive whole", headers: [.connection: "close"])

  private static let tooLarge = Problem(
    .contentTooLarge, "too_large", "a body has at most \(FleetContext.maximumBody) bytes",
    headers: [.connection: "close"])

  /// An optional member. Null counts as missing.
  package subscript(name: String) -> JSON? {
    let value = members.first { identical($0.name, name) }?.value
    return value == .null ? nil : value
  }

  /// - Parameter limit: bytes.
  package func string(_ name: String, limit: Int = 256) throws(Problem) -> String {
    guard let value = try optionalString(name, limit: limit) else { throw .malformed("\(name) is missing") }
    return value
  }

  package func optionalString(_ name: String, limit: Int = 256) throws(Problem) -> String? {
    guard let value = self[name] else { return nil }
    // PostgreSQL would end a text at a zero byte.
    guard let text = value.string, (1...limit).contains(text.utf8.count), !text.utf8.contains(0) else {
      throw .malformed("\(name) is a text of 1 to \(limit) bytes")
    }
    return text
  }

  /// A time in the notation of RFC 3339.
  package func time(_ name: String) throws(Problem) -> Int64 {
    guard let time = try Timestamp.read(string(name)) else {
      throw .malformed("\(name) is a time as in 2027-03-01T09:30:00Z")
    }
    return time
  }
}

extension Response {
  /// An answer in JSON.
  package init(_ status: HTTPResponse.Status = .ok, json: JSON, headers: HTTPFields = [:]) {
    self.init(status, jsonText: json.text, headers: headers)
  }

  /// An answer in JSON that is a text already.
  package init(_ status: HTTPResponse.Status = .ok, jsonText: String, headers: HTTPFields = [:]) {
    var headers = headers
    headers[.contentType] = "application/json"
    headers[.cacheControl] = headers[.cacheControl] ?? "no-store"
    self.init(status: status, headers: headers, body: ResponseBody(byteBuffer: ByteBuffer(string: jsonText)))
  }
}
