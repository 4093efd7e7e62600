import Encoding
import HTTP
import Rider
import StepProtocol
import SystemIO
import TestSupport

/// A server that answers what it was told to, in turn, and a clock that only moves when somebody waits.
final class PlayedServer: HTTPTransport {
  typealias Answer = Result<HTTPResponse, HTTPError>

  private var answers: [Answer] = []
  var meanwhile: (() -> Bool)?
  private(set) var requests: [HTTPRequest] = []
  /// How long each wait was, seconds.
  private(set) var waits: [Int64] = []
  var time: Int64 = 1_795_000_000
  let folder: TemporaryFolder
  let device = SigningKey()

  init() throws { folder = try TemporaryFolder() }

  func send(_ request: HTTPRequest, within limit: Duration) throws(HTTPError) -> HTTPResponse {
    requests.append(request)
    guard !answers.isEmpty else { throw .unreachable(host: "a", "nothing is played") }
    return try answers.removeFirst().get()
  }

  func presentedCertificates(by url: String, within limit: Duration) throws(HTTPError) -> [String] { [] }

  func will(_ status: Int, _ body: JSON, date: String? = nil) {
    answers.append(
      .success(HTTPResponse(status: status, headers: date.map { ["date": $0] } ?? [:], body: body.bytes)))
  }

  /// Somebody answers who does not speak as a fleet's server does: a proxy, or the network itself.
  func will(_ status: Int, page: String, headers: [String: String] = [:]) {
    answers.append(.success(HTTPResponse(status: status, headers: headers, body: Array(page.utf8))))
  }

  func will(fail error: HTTPError) { answers.append(.failure(error)) }

  var client: FleetClient {
    get throws { FleetClient(at: try FleetAddress("https://a"), authorities: nil, in: fleetFolder, world) }
  }

  var fleetFolder: FleetFolder { FleetFolder("\(folder.path)/fleet") }

  var world: FleetClient.World {
    let start = Instant.now
    let begin = time
    return FleetClient.World(
      device: { self.device }, clock: { self.time }, steady: { start + .seconds(self.time - begin) },
      transport: { _ in self },
      pause: { duration in
        self.waits.append(duration.components.seconds)
        self.time += duration.components.seconds
      },
      interruption: nil)
  }

  /// The keys of the requests that have one (Idempotency-Key).
  var keys: [String?] {
    requests.compactMap { $0.headers.first { $0.name == "Idempotency-Key" }?.value }
  }

  /// The fields of a form that was sent.
  func form(_ index: Int) -> [String: String] {
    let text = String(decoding: requests[index].body ?? [], as: UTF8.self)
    let pairs = text.split(separator: "&").map { $0.split(separator: "=", maxSplits: 1).map(String.init) }
    return Dictionary(uniqueKeysWithValues: pairs.map { ($0[0], $0.count == 2 ? $0[1] : "") })
  }

  // MARK: - What a server says

  static let metadata: JSON = [
    "issuer": "https://a", "device_authorization_endpoint": "https://a/oauth/device_authorization",
    "token_endpoint": "https://a/oauth/token", "revocation_endpoint": "https://a/oauth/revoke",
  ]

  static let code: JSON = [
    "device_code": "the-device-code", "user_code": "BCDF-GHJK", "verification_uri": "https://a/device",
    "verification_uri_complete": "https://a/device?user_code=BCDF-GHJK", "expires_in": 60, "interval": 5,
  ]

  static func tokens(_ name: String) -> JSON {
    [
      "access_token": .string("access-\(name)"), "token_type": "DPoP", "expires_in": 600,
      "refresh_token": .string("refresh-\(name)"),
    ]
  }

  static func error(_ code: String) -> JSON { ["error": .string(code)] }

  /// A login with tokens that have ended.
  func isLoggedIn(ended: Bool = false, as name: String = "0") throws {
    try fleetFolder.change(until: .now + .seconds(60), nil) { _, save in
      try save(
        SavedLogin(
          server: FleetAddress("https://a"),
          tokens: .init(
            access: "access-\(name)", expires: time + (ended ? -1 : 600), refresh: "refresh-\(name)",
            tokenEndpoint: "https://a/oauth/token", revocationEndpoint: "https://a/oauth/revoke")))
    }
  }
}
