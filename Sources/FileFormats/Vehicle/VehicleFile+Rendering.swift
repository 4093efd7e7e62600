import Domain
import Encoding
import Geography
import MQTT
import StepProtocol

extension VehicleFile {
  /// The file's text. Reading the text gives the same value, with paths relative to the reader's working folder.
  package func render() -> String {
    [vehicleText, brokerText, controllerText, vehicle.steps.map(\.rendered).joined(), placeText, riderText].joined()
  }

  private var vehicleText: String {
    var text = """
      # A vehicle as stepctl knows it. Paths are relative to this file, so the folder can be moved.
      name = \(TOMLText.quoted(vehicle.name))
      # What the iBeacons on the steps send as their UUID.
      uuid = "\(vehicle.uuid)"

      """
    if let operatorKey {
      text += """
        # Whoever signs tokens and codes for the vehicle: their public key (Ed25519), base64url.
        operator = "\(Base64URL.encode(operatorKey.bytes))"

        """
    }
    if let signed {
      text += """
        # When they signed this, Unix time. No older code is believed.
        signed = \(signed)

        """
    }
    if let topic {
      text += """
        # What the vehicle's MQTT topics begin with.
        topic = "\(topic)"

        """
    }
    return text
  }

  private var brokerText: String {
    guard let broker else { return "" }
    var text = """

      [broker]
      host = \(TOMLText.quoted(broker.host))
      port = \(broker.port)

      """
    if let authority = broker.tls?.authority {
      text += """
        # The authority that the broker's certificate must be from.
        ca = \(TOMLText.quoted(authority))

        """
    }
    if let identity = broker.tls?.identity {
      text += """
        # Who we are to the broker. The key is private (mode 0600).
        cert = \(TOMLText.quoted(identity.certificate))
        key = \(TOMLText.quoted(identity.key))

        """
    }
    return text
  }

  private var controllerText: String {
    guard let controller else { return "" }
    return """

      # The controller's public keys, base64url: commands are encrypted to the first (X25519),
      # statements are signed with the second (Ed25519).
      [controller]
      encryption_key = "\(Base64URL.encode(controller.encryption.bytes))"
      signing_key = "\(Base64URL.encode(controller.signing.bytes))"

      """
  }

  private var placeText: String {
    guard let place else { return "" }
    return """

      # Where it is parked, degrees (WGS 84), for `stepctl find`.
      [place]
      latitude = \(TOMLText.number(place.latitude))
      longitude = \(TOMLText.number(place.longitude))

      """
  }

  private var riderText: String {
    guard let rider else { return "" }
    return """

      # Who may command the vehicle from here. The device key is private (mode 0600).
      [rider]
      name = \(TOMLText.quoted(rider.name))
      device_key = \(TOMLText.quoted(rider.deviceKey))
      token = \(TOMLText.quoted(rider.token))

      """
  }
}

extension Step {
  fileprivate var rendered: String {
    var text = """

      [[steps]]
      id = "\(id)"
      side = "\(side.rawValue)"
      # What this step's iBeacon sends as its major.
      major = \(major)

      """
    if let measuredPower {
      text += """
        # The RSSI at 1 m in dBm, in place of what the iBeacon sends; `stepctl calibrate` measures it.
        measured_power = \(measuredPower)

        """
    }
    if let minor {
      text += """
        # What its iBeacon always sends as its minor.
        minor = \(minor)

        """
    }
    if !tags.isEmpty {
      text += """
        # The UIDs of its NFC tags.
        tags = [\(tags.map { "\"\($0)\"" }.joined(separator: ", "))]

        """
    }
    return text
  }
}
