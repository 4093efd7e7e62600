import Encoding

// What people and the operator are told of accounts.

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
