import Encoding
import Web

// How accounts are written and read in the API: what people send, and what they and the operator are told.

/// The password's place in a body. It may be longer than other texts.
private let passwordLimit = 1024

/// Somebody asks for an account.
struct NewAccountForm: Sendable, Equatable {
  static let members = ["email", "password", "terms"]
  let email: String
  let password: String
  /// The version of the terms that the person accepts.
  let terms: String

  init(_ body: Body) throws(Problem) {
    email = try body.string("email")
    password = try body.string("password", limit: passwordLimit)
    terms = try body.string("terms")
  }
}

/// Somebody confirms an address with the code that was mailed to it.
struct ConfirmationForm: Sendable, Equatable {
  static let members = ["email", "code"]
  let email: String
  let code: String

  init(_ body: Body) throws(Problem) {
    email = try body.string("email")
    code = try body.string("code")
  }
}

/// Somebody who has forgotten a password asks for a code, or brings it.
enum ResetForm: Sendable, Equatable {
  case request(email: String)
  case reset(email: String, code: String, password: String)

  static let members = ["email", "code", "password"]

  init(_ body: Body) throws(Problem) {
    let email = try body.string("email")
    guard let code = try body.optionalString("code") else {
      guard body["password"] == nil else { throw .malformed("code is missing") }
      self = .request(email: email)
      return
    }
    self = .reset(email: email, code: code, password: try body.string("password", limit: passwordLimit))
  }
}

/// Somebody who is logged in changes the password.
struct PasswordForm: Sendable, Equatable {
  static let members = ["current", "password"]
  let current: String
  let password: String

  init(_ body: Body) throws(Problem) {
    current = try body.string("current", limit: passwordLimit)
    password = try body.string("password", limit: passwordLimit)
  }
}

/// The operator gives an account a role.
struct RoleForm: Sendable, Equatable {
  static let members = ["role"]
  let role: Role

  init(_ body: Body) throws(Problem) {
    guard let role = Role(rawValue: try body.string("role")) else {
      throw .malformed("role is \(Role.allCases.map(\.rawValue).joined(separator: ", "))")
    }
    self.role = role
  }
}

extension Account {
  /// For the person, with the devices that are logged in.
  func members(sessions: [Session]) -> [JSON.Member] {
    [
      .init("id", .string(id)), .init("email", email.map(JSON.string) ?? .null), .init("role", .string(role.rawValue)),
      .init("terms", .string(terms)), .init("terms_accepted", .string(Timestamp.text(termsAccepted))),
      .init("created", .string(Timestamp.text(created))), .init("logins", .array(sessions.map(\.json))),
    ]
  }

  /// For the fleet's operator.
  var summary: JSON {
    [
      "id": .string(id), "email": email.map(JSON.string) ?? .null, "role": .string(role.rawValue),
      "state": .string(state.rawValue), "created": .string(Timestamp.text(created)),
    ]
  }
}

extension Session {
  /// For the person whose login it is.
  var json: JSON {
    [
      "device": .string(device), "since": .string(Timestamp.text(created)), "used": .string(Timestamp.text(used)),
    ]
  }
}
