package import StepProtocol

/// Who a rider is to a controller.
package struct Rider: Equatable, Sendable {
  package var name: String
  /// The path of the private JWK that commands are signed with; nobody but its owner may read it.
  package var deviceKey: String
  /// The path of the token, a JWT that is bound to that key.
  package var token: String

  package init(name: String, deviceKey: String, token: String) {
    self.name = name
    self.deviceKey = deviceKey
    self.token = token
  }

  /// Throws when the token is bound to another key than the device's: to such a rider no controller says a word.
  package func check(_ token: Token, isBoundTo device: VerificationKey) throws(ConfigurationError) {
    guard token.device == device else {
      throw ConfigurationError(
        self.token, "the token is bound to another device key than \(deviceKey): take both as the operator made them")
    }
  }
}
