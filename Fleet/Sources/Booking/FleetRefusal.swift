package import Domain
import Encoding

/// Why the rules do not allow what is asked.
package enum FleetRefusal: Error, Equatable, CustomStringConvertible {
  // The time of a booking.
  case backwards, past, tooShort, tooLong, tooFar
  /// Another booking has that time. With the next free intervals of the same length.
  case taken(next: [Interval])
  /// A booking cannot be extended so far. With its latest end, Unix time.
  case takenUntil(Int64)

  // A booking.
  case noSuchBooking
  /// More than one booking's id begins so.
  case severalBookings(String)
  /// The rider has no booking that has begun.
  case notBegunYet
  /// The rider has that many bookings that have begun.
  case severalBegun(Int)
  /// The booking has ended, or was cancelled.
  case over
  /// The booking is in use: it can be ended, but not cancelled.
  case active
  /// The booking can be cancelled, but not ended.
  case notBegun
  /// Whoever asks has read another version of the booking.
  case changed
  /// With the maximum number of an account's bookings that are not over.
  case tooManyBookings(Int64)
  /// The key of a request that may be sent twice belongs to another request.
  case keyReused

  // A vehicle.
  case noSuchVehicle
  /// Nothing of that kind has that name, and the name that may be meant.
  case notNamed(String, String, near: String?)
  /// More than one vehicle is meant by that name.
  case severalVehicles(String)
  case outOfService
  case noSuchStep(StepID)
  case badName
  case nameTaken
  /// The name or the id is, or was, another vehicle's.
  case vehicleTaken
  /// The id or the topic is another vehicle's at the operator.
  case topicTaken
  case badCode
  /// The code is for the vehicle of that name.
  case otherName(String)
  /// Two steps have the same id, side or major.
  case sameSteps
  /// The operator does not take the certificate request of a vehicle that joins.
  case badApplication(String)

  // A zone.
  case noSuchZone
  /// More than one zone is meant by that name.
  case severalZones(String)
  /// There are already so many.
  case tooManyZones(Int64)
  case badZoneName
  case zoneTaken
  /// Why it is no area.
  case badArea(String)

  // Access.
  case suspended
  case deviceRevoked
  /// The request for access is another device's than the one that sends it.
  case otherDevice
  /// Access is available from this time on, Unix time.
  case tooEarly(from: Int64)
  /// More access is available from this time on, Unix time.
  case tooMuchAccess(until: Int64)
  /// The booking has changed while the access was made.
  case changedMeanwhile
  /// The operator does not take the device's request.
  case badRequest(String)

  /// The code for programs: a word that never changes.
  package var code: String {
    switch self {
    case .backwards: "backwards"
    case .past: "past"
    case .tooShort: "too_short"
    case .tooLong: "too_long"
    case .tooFar: "too_far"
    case .taken, .takenUntil, .nameTaken, .vehicleTaken, .topicTaken, .zoneTaken: "taken"
    case .noSuchBooking, .noSuchVehicle, .noSuchZone, .notNamed: "not_found"
    case .severalBookings, .severalBegun, .severalZones, .severalVehicles: "ambiguous"
    case .tooManyZones: "too_many_zones"
    case .notBegunYet: "not_begun"
    case .over: "over"
    case .active: "active"
    case .notBegun: "not_begun"
    case .changed, .changedMeanwhile: "changed"
    case .tooManyBookings: "too_many_bookings"
    case .keyReused: "key_reused"
    case .outOfService: "unavailable"
    case .noSuchStep: "no_such_step"
    case .badName, .sameSteps, .badApplication, .badZoneName: "malformed"
    case .badArea: "bad_area"
    case .badCode: "bad_code"
    case .otherName: "other_name"
    case .suspended: "unauthorized"
    case .deviceRevoked: "device_revoked"
    case .otherDevice, .badRequest: "bad_request"
    case .tooEarly: "too_early"
    case .tooMuchAccess: "too_many_access"
    }
  }

  /// The text for people.
  package var description: String {
    switch self {
    case .backwards: "the booking would end before it begins"
    case .past: "the booking would begin in the past"
    case .tooShort: "a booking lasts for at least a minute"
    case .tooLong: "a booking lasts for at most 31 days"
    case .tooFar: "a booking begins within 400 days"
    case .taken, .takenUntil: "another booking has that time"
    case .noSuchBooking: "no such booking"
    case .severalBookings(let begin): "more than one booking begins with \(begin)"
    case .notBegunYet: "no booking has begun that is not over"
    case .severalBegun(let count): "\(count) bookings have begun: name one by its id"
    case .over: "the booking is over"
    case .active: "the booking is in use: end it instead"
    case .notBegun: "the booking is not in use: cancel it instead"
    case .changed: "the booking has changed; read it, and ask again"
    case .tooManyBookings(let limit): "the account has \(limit) bookings that are not over, and cannot have more"
    case .keyReused: "the Idempotency-Key was used for another request"
    case .noSuchVehicle: "no such vehicle"
    case .notNamed(let kind, let name, let near):
      "no \(kind) is called \"\(name)\"" + (near.map { "; did you mean \"\($0)\"?" } ?? "")
    case .severalVehicles(let name): "more than one vehicle is meant by \(name): name one by its id"
    case .outOfService: "the vehicle is out of service"
    case .noSuchStep(let step): "the vehicle has no step \(step)"
    case .badName: "a vehicle's name is \(Vehicle.nameRule)"
    case .nameTaken: "there is a vehicle of that name"
    case .vehicleTaken: "there is, or was, a vehicle of that name or id"
    case .topicTaken: "a vehicle with that id or topic is there"
    case .badCode: "the code is wrong, was used, or has ended"
    case .otherName(let name): "the code is for the vehicle \"\(name)\""
    case .sameSteps: "steps: two have the same id, side or major"
    case .badApplication(let reason), .badRequest(let reason): reason
    case .noSuchZone: "no such zone"
    case .severalZones(let name): "more than one zone is meant by \(name)"
    case .tooManyZones(let most): "there are \(most) zones, and there cannot be more"
    case .badZoneName: "a zone's name is \(Vehicle.nameRule)"
    case .zoneTaken: "there is a zone of that name"
    case .badArea(let reason): "the area: \(reason)"
    case .suspended: "the account is suspended"
    case .deviceRevoked: "the operator has taken back this device's access; it needs a new device key"
    case .otherDevice: "the request is of another device than the one that asks"
    case .tooEarly: "access can be had from 24 hours before the booking begins"
    case .tooMuchAccess(let next):
      "there is too much access to the vehicle that has not ended; ask again at \(Timestamp.text(next))"
    case .changedMeanwhile: "the booking has changed meanwhile; ask again"
    }
  }
}
