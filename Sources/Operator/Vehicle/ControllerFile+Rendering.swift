import Bluetooth
import Domain
import Encoding
import FileFormats
import Geography
import MQTT
import Positioning
import StepController
import StepProtocol
import StepdConfiguration
import Traffic
import TrafficFeed

extension ControllerFile {
  /// The text of a new vehicle's file: what `provision vehicle` decides. Everything else has its usual value, until
  /// somebody adds it. Reading the text gives the same value, with paths relative to the reader's working folder.
  package func render() -> String {
    let pathsText = """
      # A vehicle's controller. Paths are relative to this file, so the folder can be moved.
      vehicle = \(TOMLText.quoted(vehicle))
      # What survives a restart: written before each motion.
      journal = \(TOMLText.quoted(journal))

      """
    return [
      pathsText, broker.rendered, keys.rendered, policy.rendered, beaconsText, tagsText, servoText,
      trafficGuard?.rendered ?? "",
    ].joined()
  }

  private var beaconsText: String {
    var text = ""
    if !beacons.isEmpty || beaconPeriod != RotatingMinor.standardPeriod {
      text += """

        [beacon]
        # How long each minor of the steps' iBeacons lasts, 1 to 3600 seconds.
        period_s = \(beaconPeriod)

        """
    }
    for (id, beacon) in sortedByStep(beacons) {
      text += """

        [beacon.steps.\(id)]
        # Private (mode 0600): what the minors are computed from.
        secret = \(TOMLText.quoted(beacon.secret))

        """
      if let radio = beacon.radio { text += "adapter = \(TOMLText.quoted(radio.description))\n" }
    }
    return text
  }

  private var tagsText: String {
    guard let tagKeys else { return "" }
    return """

      [tags]
      # Private (mode 0600): what the messages of dynamic tags are verified with.
      keys = \(TOMLText.quoted(tagKeys))

      """
  }

  private var servoText: String {
    """

    [servo]
    # How long a step takes to its other end, and after how long a motion has failed.
    travel_s = \(TOMLText.seconds(profile.travel))
    limit_s = \(TOMLText.seconds(profile.limit))
    # Where the steps stand when there is no journal yet.
    installed = "\(installed.rawValue)"

    """ + servo.rendered
  }
}

/// In the order of the steps' ids, so that equal values give equal texts.
private func sortedByStep<Value>(_ values: [StepID: Value]) -> [(key: StepID, value: Value)] {
  values.sorted { $0.key.description < $1.key.description }
}

extension ControllerFile.BrokerLogin {
  fileprivate var rendered: String {
    """

    [broker]
    # Who the controller is to the broker. The key is private (mode 0600).
    cert = \(TOMLText.quoted(identity.certificate))
    key = \(TOMLText.quoted(identity.key))
    # host, port and ca are the vehicle file's unless they stand here.

    """
  }
}

extension ControllerFile.KeyFiles {
  fileprivate var rendered: String {
    """

    [keys]
    # Private (mode 0600): what commands are decrypted and statements are signed with.
    encryption = \(TOMLText.quoted(encryption))
    signing = \(TOMLText.quoted(signing))
    # Public: what riders' tokens are signed with.
    operator = "\(Base64URL.encode(operatorKey.bytes))"

    """
  }
}

extension Policy {
  fileprivate var rendered: String {
    let proofs = ProofMethod.allCases.filter(methods.contains).map { TOMLText.quoted($0.rawValue) }
    return """

      [policy]
      # The farthest a rider may be: "immediate" (below 0.5 m) or "near" (up to 3 m).
      zone = "\(zone.rawValue)"
      # The kinds of proof that are accepted: "beacon", "nfc", "qr", "heard".
      proofs = [\(proofs.joined(separator: ", "))]
      # Whether identifiers that can be copied are enough: beacons that always send the same,
      # plain tags, and codes.
      static = \(acceptsStatic)
      # How old a proof of presence may be, 1 to 60 seconds.
      proof_age_s = \(TOMLText.seconds(proofAge))
      # For how long after it was opened a step can be closed only by whoever opened it.
      reserve_s = \(TOMLText.seconds(reserve))

      """
  }
}

extension ServoHardware {
  fileprivate var rendered: String {
    switch self {
    case .simulated(let log):
      return """
        # "simulated" moves nothing and writes each motion to the log; "pwm" drives servos.
        driver = "simulated"
        log = \(TOMLText.quoted(log))

        """
    case .pwm(let pwm):
      let text = """
        driver = "pwm"
        root = \(TOMLText.quoted(pwm.root))
        frequency_hz = \(pwm.frequency)

        """
      return sortedByStep(pwm.channels).reduce(text) { text, servo in
        text
          + "\n[servo.steps.\(servo.key)]\n\(servo.value.chip.rendered)channel = \(servo.value.channel)\n\(servo.value.pulses.rendered)"
      }
    case .pca9685(let board):
      let text = """
        driver = "pca9685"
        bus = \(TOMLText.quoted(board.bus))
        address = 0x\(String(board.address, radix: 16))
        frequency_hz = \(board.frequency)

        """
      return sortedByStep(board.channels).reduce(text) { text, servo in
        text + "\n[servo.steps.\(servo.key)]\nchannel = \(servo.value.channel)\n\(servo.value.pulses.rendered)"
      }
    }
  }
}

extension ControllerFile.Guard {
  fileprivate var rendered: String {
    func line(_ key: String, _ value: String?) -> String { value.map { "\(key) = \($0)\n" } ?? "" }
    var text = """

      [guard]
      # A traffic feed: no step opens while something on the road comes towards it.
      feed = \(TOMLText.quoted(feed.address.description))

      """
    text += line("radius_m", TOMLText.number(feed.radius))
    text += line("axes", TOMLText.quoted(feed.axes.rawValue))
    text += """
      # Whether a step opens while the guard cannot see the road: "allow" or "refuse".
      blind = "\(refusesBlind ? "refuse" : "allow")"
      # Where the vehicle is: "fixed", "gpsd", or "feed", where its own box is looked for.

      """
    let place = isInFeed ? Place.feed : receiver == nil ? .fixed : .gpsd
    text +=
      line("place", TOMLText.quoted(place.rawValue)) + line("gpsd", receiver.map { TOMLText.quoted($0.description) })
    func degrees(_ radians: Double) -> String { TOMLText.number((radians * 180 / .pi * 1e6).rounded() / 1e6) }
    switch source {
    case .given(let position, let error, let heading):
      text += line("latitude", TOMLText.number(position.latitude))
      text += line("longitude", TOMLText.number(position.longitude))
      if !isInFeed { text += line("heading_deg", degrees(heading)) }
      text += line("error_m", TOMLText.number(error))
    case .receiver(let heading): text += line("heading_deg", heading.map(degrees))
    }
    text += line("length_m", TOMLText.number(length)) + line("width_m", TOMLText.number(width))
    for (id, span) in sortedByStep(steps) {
      text += """

        [guard.steps.\(id)]
        # Where it begins and ends, metres behind the front, and how far it comes out.
        from_m = \(TOMLText.number(span.from))
        to_m = \(TOMLText.number(span.to))
        reach_m = \(TOMLText.number(span.reach))

        """
    }
    return text
  }
}

extension PWMChip {
  fileprivate var rendered: String {
    switch self {
    case .number(let number):
      """
      # The number differs between models and kernels: write the name of the chip's device, see stepd-servo(7).
      chip = \(number)

      """
    case .device(let name): "chip = \(TOMLText.quoted(name))\n"
    }
  }
}

extension ServoPulses {
  fileprivate var rendered: String {
    """
    # Pulses that hold the step at its ends, 400 to 2600 µs.
    closed_us = \(closed)
    open_us = \(open)

    """
  }
}
