package import Domain
package import StepProtocol

/// What a rider is to be allowed.
package struct TokenPlan: Sendable {
  package var rider: RiderName
  /// Nil for all that the vehicle has.
  package var steps: [StepID]?
  /// Unix time.
  package var notBefore: Int64
  /// Seconds.
  package var lifetime: Int64
  /// The public key of a device that keeps its private key to itself; nil to have one made, or to keep the one that
  /// the rider has.
  package var deviceKey: VerificationKey?

  package init(
    rider: RiderName, steps: [StepID]? = nil, notBefore: Int64, lifetime: Int64, deviceKey: VerificationKey? = nil
  ) {
    self.rider = rider
    self.steps = steps
    self.notBefore = notBefore
    self.lifetime = lifetime
    self.deviceKey = deviceKey
  }
}

/// A rider, as the operator calls them: 1 to 64 letters, digits, `.`, `-` and `_` of ASCII, the first not a `.`.
///
/// It becomes the name of a folder, so nothing in it can lead elsewhere or hide it.
package struct RiderName: Hashable, Sendable, CustomStringConvertible {
  package let description: String

  package init?(_ text: String) {
    let allowed = text.utf8.allSatisfy {
      ($0 >= 0x61 && $0 <= 0x7A) || ($0 >= 0x41 && $0 <= 0x5A) || ($0 >= 0x30 && $0 <= 0x39)
        || $0 == 0x2D || $0 == 0x2E || $0 == 0x5F
    }
    guard allowed, (1...64).contains(text.utf8.count), !text.hasPrefix(".") else { return nil }
    description = text
  }
}

/// What was made of a plan for a rider.
package struct TokenSummary: Sendable, Equatable {
  /// The files that were written, as paths from the vehicle's folder.
  package let files: [String]
  package let token: Token
  /// Where, from the vehicle's folder, the rider has to put the device's private key; nil when it is there.
  package let missingDeviceKey: String?
  /// When the rider's certificate ends, Unix time.
  package let certificateEnd: Int64

  /// The key that the token is bound to, for the rider to compare with what the device shows.
  package var deviceKey: Thumbprint { token.device.thumbprint }
}
