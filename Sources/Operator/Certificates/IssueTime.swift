import Certificates
package import Domain
import Encoding

/// A time at which an operator may issue something. Whatever says when it was made, or how long it is valid, is made
/// with it: certificates and their revocations, tokens, notices and codes.
///
/// A computer without a battery for its clock starts in 1970, or where its clock stood when it was turned off, until
/// the network corrects it. What is issued by such a clock has ended before anybody uses it, replaces something that
/// works, and makes the broker or the vehicle refuse everybody.
struct IssueTime: Sendable {
  /// 2026-11-21T00:00:00Z, Unix time: the day on which stepctl began, so no clock that a stepctl sees is right before
  /// it. It bounds what no authority bounds: a new authority, and a vehicle's new keys.
  ///
  /// It is a constant of the source and not the time of the build, because two builds of one source are the same
  /// program.
  static let earliest: Int64 = 1_795_219_200

  /// How far a reader's clock may be behind the issuer's, seconds.
  private static let leeway: Int64 = 300

  /// Unix time.
  let now: Int64
  /// The first and the last second of whatever is issued, Unix time.
  let bounds: ClosedRange<Int64>

  /// For what no authority bounds.
  ///
  /// - Parameter now: Unix time.
  init(_ now: Int64) throws(ClockError) {
    guard now >= Self.earliest else { throw .unset(now: now) }
    (self.now, bounds) = (now, now - Self.leeway...Int64.max)
  }

  /// For what an authority issues.
  ///
  /// - Parameters:
  ///   - now: Unix time.
  ///   - path: the file of the authority's certificate, for errors.
  /// - Throws: `ClockError`, `OpenSSLError`.
  init(_ now: Int64, of authority: borrowing Certificate, at path: String) throws {
    let (begin, end) = try authority.validity()
    _ = try IssueTime(now)
    guard now >= begin else { throw ClockError.early(path, begin: begin, now: now) }
    // In its last second, what it issues would end when it begins.
    guard now < end else { throw ClockError.ended(path, end: end, now: now) }
    (self.now, bounds) = (now, begin...end)
  }

  /// The first and the last second of a new certificate. The certificate begins early, for readers whose clock is
  /// behind, and never outlives its authority.
  ///
  /// - Parameters:
  ///   - seconds: how long it lasts, more than 0.
  ///   - time: the least end, Unix time.
  func validity(lasting seconds: Int64, until time: Int64 = 0) -> ClosedRange<Int64> {
    max(now - Self.leeway, bounds.lowerBound)...min(max(now + seconds, time), bounds.upperBound)
  }

  /// Throws unless the authority is valid for all of a token's time.
  ///
  /// - Parameter validity: Unix time, the end exclusive.
  func check(_ validity: Range<Int64>) throws(ProvisioningError) {
    guard validity.lowerBound >= bounds.lowerBound else { throw .beforeAuthority(begin: bounds.lowerBound) }
    guard validity.upperBound <= bounds.upperBound else { throw .outlivesAuthority(end: bounds.upperBound) }
  }
}

/// Why nothing is issued at this computer's time. Nothing was changed.
package enum ClockError: Failure, Equatable {
  /// The clock shows a time before the first stepctl.
  case unset(now: Int64)
  /// The clock shows a time before the authority whose certificate is at that path.
  case early(String, begin: Int64, now: Int64)
  /// The authority whose certificate is at that path has ended.
  case ended(String, end: Int64, now: Int64)

  package var exitStatus: ExitStatus { .configuration }

  package var description: String {
    switch self {
    case .unset(let now): "this computer's clock is not set: it shows \(Timestamp.text(now)); nothing was changed"
    case .early(let path, let begin, let now):
      "this computer's clock shows \(Timestamp.text(now)), but \(path), which issues certificates, begins"
        + " \(Timestamp.text(begin)); nothing was changed"
    case .ended(let path, let end, let now):
      "\(path), which issues certificates, ended \(Timestamp.text(end)), and this computer's clock shows"
        + " \(Timestamp.text(now)); nothing was changed"
    }
  }

  package var hint: String? {
    switch self {
    case .unset, .early: "set the clock, and try again: `timedatectl set-ntp true`"
    case .ended:
      "if the clock is right, make the vehicle again: `stepctl provision vehicle DIR --force`; an operator of several"
        + " begins with `stepctl operator init`; then every rider needs new access"
    }
  }
}
