import Booking
import Encoding
import HTTPTypes
import Hummingbird
import Store
import Web

extension Problem {
  /// What a rider or the operator is told of a rule that does not allow what was asked.
  init(_ refusal: FleetRefusal) {
    var members: [JSON.Member] = []
    var headers = HTTPFields()
    let status: HTTPResponse.Status
    switch refusal {
    case .badName, .sameSteps, .badApplication, .badZoneName: status = .badRequest
    case .suspended:
      status = .unauthorized
      headers[.wwwAuthenticate] = #"DPoP algs="EdDSA Ed25519""#
    case .badCode: status = .forbidden
    case .noSuchBooking, .noSuchVehicle, .noSuchZone, .notNamed: status = .notFound
    case .takenUntil(let end):
      status = .conflict
      members = [.init("latest_end", .string(Timestamp.text(end)))]
    case .severalVehicles, .severalBookings, .severalBegun, .notBegunYet, .zoneTaken, .severalZones, .tooManyZones:
      status = .conflict
    case .over, .active, .notBegun, .tooManyBookings, .outOfService, .nameTaken, .vehicleTaken, .topicTaken, .otherName,
      .deviceRevoked, .changedMeanwhile:
      status = .conflict
    case .taken(let next):
      status = .conflict
      members = [.init("next", .array(next.map(\.json)))]
    case .tooEarly(let from), .tooMuchAccess(let from):
      status = .conflict
      members = [.init("from", .string(Timestamp.text(from)))]
    case .changed: status = .preconditionFailed
    case .backwards, .past, .tooShort, .tooLong, .tooFar, .keyReused, .noSuchStep, .otherDevice, .badRequest,
      .badArea:
      status = .unprocessableContent
    }
    self.init(status, refusal.code, refusal.description, members: members, headers: headers)
  }

  /// What is told of any error of a route. The server's own failures are told without a reason.
  init(_ error: any Error) {
    self =
      switch error {
      case let problem as Problem: problem
      case let refusal as FleetRefusal: Problem(refusal)
      case OperatorFailure.admission: .busy("no vehicle can join at present", seconds: 5)
      case OperatorFailure.access: .busy("access cannot be given at present", seconds: 5)
      case OperatorFailure.keys(let reason): Problem(.conflict, "keys", reason)
      case let error as any HTTPResponseError where error.status.code == 404: .notFound("path")
      case let error as any HTTPResponseError where error.status.code == 413:
        Problem(.contentTooLarge, "too_large", "a body has at most \(FleetContext.maximumBody) bytes")
      case let error as any HTTPResponseError where error.status.code < 500:
        Problem(error.status, "malformed", error.status.reasonPhrase)
      case StoreError.unavailable, StoreError.disturbed: .busy("the database cannot be used at present", seconds: 5)
      default: .failed
      }
  }
}
