import Encoding
import HTTPTypes
import Hummingbird
import NIOCore
import Store
import Web

extension FleetService {
  /// Something that was read for a client, which may wait until it changes.
  struct Reading {
    let page: TaggedPage
    /// The next moment at which it changes by itself, Unix time; nil if it does not.
    let next: Int64?
  }

  /// Answers with what is read. If the client has that already (If-None-Match) and will wait (`Prefer: wait`, RFC 7240,
  /// 4.3), the answer comes when it changes, or says after that time that it has not (304).
  func answer(
    _ request: Request, _ caller: Caller, about subject: Changes.Subject, _ read: () async throws -> Reading
  ) async throws -> Response {
    let wait = Preference.wait(in: request.headers)
    let known = request.headers[.ifNoneMatch].map { EntityTag.list($0, isWeak: true) }
    let end = ContinuousClock.now + .seconds(wait ?? 0)
    let watch = wait == nil || known == nil ? nil : changes.watch(subject, by: caller.account)
    var headers: HTTPFields = [.cacheControl: "private, no-cache"]
    // Whoever gets no such word knows that the server does not wait.
    if let wait, watch != nil { headers[.preferenceApplied] = "wait=\(wait)" }
    var hasWaited = false
    while true {
      let reading = try await read()
      headers[.eTag] = reading.page.etag.text
      guard let known, known?.contains(reading.page.etag) ?? true else {
        // The account may have been suspended meanwhile.
        if hasWaited { try await checkActive(caller.account) }
        return Response(jsonText: reading.page.text, headers: headers)
      }
      guard let watch, ContinuousClock.now < end else { return Response(status: .notModified, headers: headers) }
      let next = reading.next.map { ContinuousClock.now + .seconds(max($0 - clock(), 1)) }
      await watch.change(before: next.map { min($0, end) } ?? end)
      if changes.isEnding { return Response(status: .notModified, headers: headers) }
      hasWaited = true
    }
  }

  private func checkActive(_ account: String) async throws {
    guard try await store.read({ try AccountTable.isActive(account, in: $0) }) else {
      throw Problem(.unauthorized, "invalid_token", "the login has ended")
    }
  }
}

/// What a client would like (RFC 7240).
enum Preference {
  /// How long a client waits at most, seconds: a connection may be without an answer for half a minute.
  static let longest = 25

  /// The seconds that a client will wait; nil if it does not say so.
  static func wait(in headers: HTTPFields) -> Int? {
    for preference in headers[values: .prefer].flatMap({ $0.split(separator: ",") }) {
      // Parameters, which `wait` does not have, begin with a semicolon.
      let parts = preference.prefix { $0 != ";" }.split(separator: "=", maxSplits: 1).map {
        $0.filter { $0 != " " && $0 != "\t" && $0 != "\"" }
      }
      // The first one counts (RFC 7240, 2).
      guard parts.count == 2, parts[0].lowercased() == "wait" else { continue }
      guard !parts[1].isEmpty, parts[1].allSatisfy({ $0.isASCII && $0.isNumber }) else { return nil }
      return min(Int(parts[1]) ?? longest, longest)
    }
    return nil
  }
}

extension HTTPField.Name {
  static let prefer = HTTPField.Name("Prefer")!
  static let preferenceApplied = HTTPField.Name("Preference-Applied")!
}
