package import Domain
package import Encoding
package import HTTP

/// Why the server did not do what was asked.
package enum FleetError: Failure, Equatable {
  case http(HTTPError)
  case notLoggedIn
  /// The server no longer accepts the login.
  case loginEnded(host: String)
  /// Somebody denied the code.
  case denied
  /// Nobody accepted the code in time.
  case codeExpired
  /// The server refused the request.
  case problem(Problem, host: String)
  /// The server redirects to another address, which is not followed.
  case redirected(host: String)
  /// A part of the answer is not as agreed.
  case malformed(String, host: String)
  /// The login file cannot be read.
  case damaged(String)
  /// There is a login at another server.
  case otherServer(String)

  package var exitStatus: ExitStatus {
    switch self {
    case .http(let error): error.exitStatus
    case .notLoggedIn, .loginEnded, .denied, .codeExpired: .noPermission
    case .problem(let problem, _): problem.exitStatus
    case .redirected: .unavailable
    case .malformed, .damaged: .badData
    case .otherServer: .usage
    }
  }

  package var description: String {
    switch self {
    case .http(let error): error.description
    case .notLoggedIn: "you are not logged in"
    case .loginEnded(let host): "\(host) has ended your login"
    case .denied: "the login was denied"
    case .codeExpired: "the code has expired: nobody confirmed it in time"
    case .problem(let problem, let host): "\(host): \(problem.text)"
    case .redirected(let host): "\(host) sends you to another address, which is not followed"
    case .malformed(let part, let host): "the answer of \(host) is not understood: \(part)"
    case .damaged(let path): "\(path) is damaged"
    case .otherServer(let host): "you are logged in at \(host)"
    }
  }

  package var hint: String? {
    switch self {
    case .http(let error): error.hint
    case .notLoggedIn: "log in: stepctl login URL"
    case .loginEnded, .denied, .codeExpired: "log in again: stepctl login"
    case .problem(let problem, _): problem.hint
    case .redirected: "use the address of the server itself"
    case .malformed: "another version of stepctl may be needed"
    case .damaged: "remove it, and log in again"
    case .otherServer: "log out first: stepctl logout"
    }
  }

  package var details: [JSON.Member] {
    guard case .problem(let problem, _) = self else { return [] }
    let next = problem.next.map { time -> JSON in
      ["from": .string(Timestamp.text(time.lowerBound)), "to": .string(Timestamp.text(time.upperBound))]
    }
    return [.init("problem", .string(problem.code))] + (next.isEmpty ? [] : [.init("next", .array(next))])
  }

  package var isInterruption: Bool { self == .http(.interrupted) }
}

/// A refusal from a server (RFC 9457, RFC 6749 5.2), short enough for one line.
package struct Problem: Equatable, Sendable {
  /// The HTTP status.
  package let status: Int
  /// A word for programs.
  package let code: String
  /// For people, in the server's words.
  package let text: String
  /// Seconds to wait before the next attempt, if the server says so.
  package let retryAfter: Int64?
  /// If the vehicle is taken: the next free times. Seconds of Unix time.
  package let next: [Range<Int64>]
  /// If a booking cannot be extended so far: its latest end, Unix time.
  package let latestEnd: Int64?

  var exitStatus: ExitStatus {
    switch status {
    case 401, 403: .noPermission
    case 404: .noInput
    case 429, 500...: .unavailable
    default: .refused
    }
  }

  var hint: String? {
    if let retryAfter { return "try again in \(retryAfter) s" }
    switch code {
    case "invalid_dpop_proof": return "is this computer's clock right?"
    case "terms": return "accept them in a browser, or with stepctl login --email"
    case "device_revoked":
      return "move ~/.config/stepctl/device and ~/.config/stepctl/vehicles away, and log in again: that makes a new key"
    case "wrong_login": return "a new password is set with stepctl account password"
    default: return nil
    }
  }

  /// - Parameter body: the body of the answer, of any content.
  init(_ response: HTTPResponse) {
    let json = try? JSON(parsing: response.body)
    func text(_ name: String) -> String? {
      json?[name]?.string.flatMap { $0.isEmpty ? nil : String($0.unicodeScalars.prefix(300)) }
    }
    status = response.status
    code = (text("code") ?? text("error")).flatMap { isWord($0) ? $0 : nil } ?? "http_\(response.status)"
    let said = text("detail") ?? text("error_description") ?? text("title") ?? "status \(response.status)"
    self.text = said.hasSuffix(".") ? String(said.dropLast()) : said
    // Seconds, or a time by the server's clock (RFC 9110 10.2.3).
    let after = response.headers["retry-after"].flatMap { text in
      Int64(text)
        ?? Timestamp.date(text).flatMap { end in
          response.headers["date"].flatMap(Timestamp.date).map { max(end - $0, 0) }
        }
    }
    retryAfter = after.flatMap { (0...86_400).contains($0) ? $0 : nil }
    next = times(in: json?["next"]?.array ?? [])
    latestEnd = json?["latest_end"]?.string.flatMap { Timestamp.read($0) }
  }
}
