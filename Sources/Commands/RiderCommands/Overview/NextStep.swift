import CommandParts
import Domain
import FileFormats
import Rider
import StepProtocol

/// Where the rider stands, and the one next thing to type.
struct NextStep {
  /// The word for it in JSON, which later versions keep.
  enum State: String {
    /// A step can be opened now.
    case ready
    /// The same, and the booking ends soon.
    case bookingEnds = "booking_ends"
    /// The vehicle has refused the last command, and nothing has changed since.
    case refused
    case keyLost = "key_lost"
    case bookedLater = "booked_later"
    case tokenNotYetValid = "token_not_yet_valid"
    /// The token's times may still be valid, but the vehicle will be told that it is revoked.
    case bookingEnded = "booking_ended"
    /// The rider is logged in, and has booked nothing.
    case notBooked = "not_booked"
    case tokenExpired = "token_expired"
    case tokenLost = "token_lost"
    case noToken = "no_token"
    case loggedOut = "logged_out"
    case noVehicle = "no_vehicle"

    /// Of several vehicles, the one that needs the fewest further steps has the lowest rank.
    fileprivate var rank: Int {
      switch self {
      case .ready, .bookingEnds, .refused: 0
      case .bookedLater, .tokenNotYetValid: 1
      case .bookingEnded, .notBooked: 2
      case .tokenExpired, .loggedOut: 3
      case .tokenLost, .keyLost: 4
      case .noToken: 5
      case .noVehicle: 6
      }
    }
  }

  let state: State
  /// The vehicle that is meant, if this device knows it.
  let vehicle: KnownVehicle?
  /// Where the rider stands: a label and a sentence.
  let summary: (label: String, text: String)
  /// One command, and why. A rider who knows nothing yet has two ways.
  let commands: [(typed: String, does: String)]
  /// What to tell the operator.
  let news: String?

  private init(
    _ state: State, _ vehicle: KnownVehicle?, _ label: String, _ text: String,
    _ commands: [(typed: String, does: String)], news: String? = nil
  ) {
    (self.state, self.vehicle, summary, self.commands, self.news) = (state, vehicle, (label, text), commands, news)
  }

  /// How long before a booking's end it can be said to end soon, seconds.
  private static let soon: Int64 = 900

  init(for known: Knowledge) {
    let live = known.bookings.filter(known.isLive).sorted { $0.from < $1.from }
    let active = live.first { $0.isActive(at: known.now) }
    let best =
      known.vehicles.first { $0.file.vehicle.uuid == active?.vehicle }
      ?? known.vehicles.min { known.state(of: $0).rank < known.state(of: $1).rank }
    if known.isKeyLost || best.map({ known.state(of: $0) == .keyLost }) == true {
      self = Self.lostKey(known, best)
    } else if let refusal = known.refusal, active == nil || active?.vehicle == refusal.vehicle {
      self = Self.refused(refusal, known, active)
    } else if let active {
      self = Self.booked(active, known, best)
    } else if let best, known.state(of: best) == .ready, let token = best.token {
      self.init(.ready, best, "token", TokenReport(token, at: known.now).line, [known.opening])
    } else if let next = live.first {
      self.init(
        .bookedLater, known.vehicles.first { $0.file.vehicle.uuid == next.vehicle }, "booking",
        "\(next.title) from \(dateAndTime(next.from)) to \(dateAndTime(next.to)) (\(next.shortID))",
        [("stepctl open\(known.option)", "from \(dateAndTime(next.from)) on, in \(span(next.from - known.now))")])
    } else if known.login?.tokens != nil || best.map({ known.state(of: $0) == .bookingEnded }) == true {
      self = Self.unbooked(known, best)
    } else if let best {
      self = Self.withoutAccess(known, best)
    } else if let login = known.login {
      self.init(
        .loggedOut, nil, "account", "\(login.email.map { "\($0) at " } ?? "")\(login.server.host): not logged in",
        [("stepctl login", "then book a vehicle")])
    } else {
      self.init(
        .noVehicle, nil, "vehicle", "none: you know no vehicle yet",
        [
          ("stepctl login URL", "at the operator's server where you book"),
          ("stepctl config import FILE", "with your operator's file or picture"),
        ])
    }
  }

  // MARK: -

  private static func lostKey(_ known: Knowledge, _ vehicle: KnownVehicle?) -> NextStep {
    let login = known.login?.tokens != nil
    return NextStep(
      .keyLost, vehicle, "key", "this device's key is lost",
      [
        login
          ? ("stepctl login", "with a new key; then `stepctl open` fetches your access")
          : ("stepctl enroll --output request", "make a new key, and give the request to your operator")
      ], news: "this device has lost its key, and has a new one")
  }

  private static func refused(_ last: RememberedRefusal, _ known: Knowledge, _ active: Booking?) -> NextStep {
    let vehicle = known.vehicles.first { $0.file.vehicle.uuid == last.vehicle }
    let code = last.refusal.code
    let booking = active?.vehicle == last.vehicle ? active?.id : last.booking
    let (typed, does): (String, String) =
      switch code {
      case .tokenRevoked where active?.vehicle == last.vehicle:
        ("open", "you are still booked: it asks the operator's server for access again")
      case .tokenRevoked, .tokenExpired: ("enroll --output request", "give it to your operator, who can renew access")
      case .tokenNotYetValid: ("doctor controller", "say whose clock is wrong")
      case .wrongVehicle, .malformed: ("doctor vehicle controller", "say what does not fit together")
      case .wrongStep: ("locate", "say which step you are at; your token is for \(steps(of: vehicle))")
      case .proofNotAccepted: ("open --by nfc", "by the tag on the step, which this vehicle may accept")
      case _ where last.refusal.retryCanHelp: ("open", "try again")
      default: ("doctor", "say what does not work")
      }
    let time = dateAndTime(last.time)
    let whose =
      booking.map { "booking \($0.prefix(8))" } ?? "the token of \(vehicle?.token?.subject ?? "this device")"
    let name = vehicle?.file.vehicle.name ?? last.vehicle.description
    return NextStep(
      .refused, vehicle, "refused", "\(time) (\(code.rawValue)): \(code.sentence())",
      [("stepctl \(typed)\(known.option)", does)],
      news: last.refusal.retryCanHelp ? nil : "\(name) refused \(whose) at \(time) (\(code.rawValue))")
  }

  private static func steps(of vehicle: KnownVehicle?) -> String {
    alternatives(vehicle?.token?.steps.map(\.description) ?? [])
  }

  private static func booked(_ booking: Booking, _ known: Knowledge, _ vehicle: KnownVehicle?) -> NextStep {
    let left = booking.to - known.now
    let (label, which) = ("booking", "\(booking.title) until \(dateAndTime(booking.to)) (\(booking.shortID))")
    if left <= 0 {
      return NextStep(
        .bookingEnded, vehicle, label, which,
        [(bookAgain(booking.title), "it has ended; your access ends \(span(Booking.grace)) later")])
    }
    if left < soon {
      return NextStep(
        .bookingEnds, vehicle, label, which,
        [("stepctl bookings extend --for 1h", "it ends in \(span(left)); until then `stepctl open` works")])
    }
    return NextStep(.ready, vehicle, label, which, [known.opening])
  }

  private static func unbooked(_ known: Knowledge, _ best: KnownVehicle?) -> NextStep {
    let advice = "`stepctl vehicles` lists the vehicles that can be booked"
    let ended = best.flatMap(known.endedBooking)
    let last = ended ?? known.bookings.max { $0.to < $1.to }
    let next = [(typed: bookAgain(last?.title), does: advice)]
    if let ended {
      let state = ended.isLive ? "over" : ended.state
      return NextStep(.bookingEnded, best, "token", "of the booking \(ended.shortID), which is \(state)", next)
    }
    let who = [known.login?.email, known.login?.server.host].compactMap(\.self).joined(separator: " at ")
    return NextStep(.notBooked, nil, "account", "\(who): nothing is booked", next)
  }

  private static func bookAgain(_ vehicle: String?) -> String {
    "stepctl book \(vehicle.map(shellWord) ?? "VEHICLE") --for 2h"
  }

  private static func withoutAccess(_ known: Knowledge, _ vehicle: KnownVehicle) -> NextStep {
    let asking = [(typed: "stepctl enroll --output request", does: "give it to your operator")]
    switch vehicle.access {
    case .token(let token):
      let line = TokenReport(token, at: known.now).line
      if token.validity.state(at: known.now) == .notYet {
        return NextStep(
          .tokenNotYetValid, vehicle, "token", line,
          [("stepctl open\(known.option)", "from \(dateAndTime(token.notBefore)) on")])
      }
      return NextStep(.tokenExpired, vehicle, "token", line, asking)
    case .lost(let reason):
      return NextStep(
        .tokenLost, vehicle, "token", reason, [("stepctl config import FILE", "with what your operator gave you")])
    case .none, .keyLost:
      return NextStep(.noToken, vehicle, "token", "none; you need a token to move its steps", asking)
    }
  }
}

extension Knowledge {
  /// How to open a step with the devices of this computer.
  fileprivate var opening: (typed: String, does: String) {
    guard radio.isThere == false else {
      return ("stepctl open\(option)", "open the step that you stand in front of")
    }
    let lack = "there is no \(radio.name) here"
    if hasReader { return ("stepctl open --by nfc\(option)", "by the tag on the step: \(lack)") }
    if hasCamera { return ("stepctl open --by qr\(option)", "by the code on the step: \(lack)") }
    return ("stepctl doctor radio", "find a radio: \(lack)")
  }
}
