package import Encoding
package import HTTPTypes
package import Hummingbird

/// An error answer, for people and for programs (RFC 9457).
package struct Problem: HTTPResponseError, Equatable {
  package let status: HTTPResponse.Status
  /// The code for programs: a word that never changes, `taken`.
  package let code: String
  /// The text for people: what is wrong, and where.
  package let detail: String
  /// Further data for programs.
  package let members: [JSON.Member]
  package var headers: HTTPFields

  package init(
    _ status: HTTPResponse.Status, _ code: String, _ detail: String, members: [JSON.Member] = [],
    headers: HTTPFields = [:]
  ) {
    (self.status, self.code, self.detail, self.members, self.headers) = (status, code, detail, members, headers)
  }

  /// The request's body or one of its parameters is invalid.
  package static func malformed(_ detail: String) -> Problem { Problem(.badRequest, "malformed", detail) }
  package static func notFound(_ what: String) -> Problem { Problem(.notFound, "not_found", "no such \(what)") }
  package static let failed = Problem(
    .internalServerError, "failed", "the server failed; its log says why. What was asked may have been done")
  /// The request can be sent again; nothing was done.
  package static func busy(_ detail: String, seconds: Int = 1) -> Problem {
    Problem(.serviceUnavailable, "busy", detail, headers: [.retryAfter: "\(seconds)"])
  }

  package var json: JSON {
    .object(
      [
        JSON.Member("type", "about:blank"), .init("title", .string(status.reasonPhrase)),
        .init("status", .integer(Int64(status.code))), .init("detail", .string(detail)), .init("code", .string(code)),
      ] + members)
  }

  package func response(from request: Request, context: some RequestContext) -> Response {
    var headers = headers
    headers[.contentType] = "application/problem+json"
    return Response(
      status: status, headers: headers, body: ResponseBody(byteBuffer: ByteBuffer(string: json.text)))
  }
}
