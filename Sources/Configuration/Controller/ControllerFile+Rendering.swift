import Bluetooth
import Domain
import Encoding
import Geography
import MQTT
import Positioning
import StepController
import StepProtocol
import Traffic
import TrafficFeed

extension ControllerFile {
  /// The file's text. Reading it gives the same value, with its paths seen from where it was read.
  package func render() -> String {
    var text = """
      # A vehicle's controller. Paths are relative to this file, so the folder can be moved.
      vehicle = \(TOMLText.quoted(vehicle))
      # What survives a restart: written before each motion.
      journal = \(TOMLText.quoted(journal))

      [broker]
      # Who the controller is to the broker. The key is private (mode 0600).
      cert = \(TOMLText.quoted(broker.identity.certificate))
      key = \(TOMLText.quoted(broker.identity.key))
      # host, port and ca are the vehicle file's unless they stand here.

      """
    if let host = broker.host { text += "host = \(TOMLText.quoted(host))\n" }
    if let port = broker.port { text += "port = \(port)\n" }
    if let authority = broker.authority { text += "ca = \(TOMLText.quoted(authority))\n" }
    let proofs = ProofMethod.allCases.filter(policy.methods.contains).map { TOMLText.quoted($0.rawValue) }
    text += """

      [keys]
      # Private (mode 0600): what commands are decrypted and statements are signed with.
      encryption = \(TOMLText.quoted(keys.encryption))
      signing = \(TOMLText.quoted(keys.signing))
      # Public: what riders' tokens are signed with.
      operator = "\(Base64URL.encode(keys.operatorKey.bytes))"

      [policy]
      # The farthest a rider may be: "immediate" (below 0.5 m) or "near" (up to 3 m).
      zone = "\(policy.zone.rawValue)"
      # The kinds of proof that are accepted: "beacon", "nfc", "qr", "heard".
      proofs = [\(proofs.joined(separator: ", "))]

      """
    if policy.needsHearing {
      text += """
        # The vehicle must hear the rider's device, whatever else is proved.
        both = true

        """
    }
    text += """
      # Whether identifiers that can be copied are enough: beacons that always send the same,
      # plain tags, and codes.
      static = \(policy.acceptsStatic)
      # How old a proof of presence may be, 1 to 60 seconds.
      proof_age_s = \(TOMLText.seconds(policy.proofAge))
      # For how long after it was opened a step can be closed only by whoever opened it.
      reserve_s = \(TOMLText.seconds(policy.reserve))

      """
    if !beacons.isEmpty || beaconPeriod != RotatingMinor.standardPeriod {
      text += """

        [beacon]
        # How long each minor of the steps' iBeacons lasts, 1 to 3600 seconds.
        period_s = \(beaconPeriod)

        """
    }
    for (id, beacon) in beacons.sorted(by: { $0.key.description < $1.key.description }) {
      text += """

        [beacon.steps.\(id)]
        # Private (mode 0600): what the minors are computed from.
        secret = \(TOMLText.quoted(beacon.secret))

        """
      if let radio = beacon.radio { text += "adapter = \(TOMLText.quoted(radio.description))\n" }
    }
    for (id, ear) in ears.sorted(by: { $0.key.description < $1.key.description }) {
      text += """

        [ears.steps.\(id)]
        # The adapter at this step that hears riders' devices.
        adapter = \(TOMLText.quoted(ear.radio.description))
        # The RSSI of a usual device 1 m from it, dBm.
        measured_power = \(ear.measuredPower)

        """
    }
    if let tagKeys {
      text += """

        [tags]
        # Private (mode 0600): what the messages of dynamic tags are verified with.
        keys = \(TOMLText.quoted(tagKeys))

        """
    }
    text += """

      [servo]
      # How long a step takes to its other end, and after how long a motion has failed.
      travel_s = \(TOMLText.seconds(profile.travel))
      limit_s = \(TOMLText.seconds(profile.limit))
      # Where the steps stand when there is no journal yet.
      installed = "\(installed.rawValue)"

      """
    switch servo {
    case .simulated(let log):
      text += """
        # "simulated" moves nothing and writes each motion to the log; "pwm" drives servos.
        driver = "simulated"
        log = \(TOMLText.quoted(log))

        """
    case .pwm(let pwm):
      text += """
        driver = "pwm"
        root = \(TOMLText.quoted(pwm.root))
        frequency_hz = \(pwm.frequency)

        """
      for (id, channel) in pwm.channels.sorted(by: { $0.key.description < $1.key.description }) {
        text += "\n[servo.steps.\(id)]\nchip = \(channel.chip)\n"
        text += "channel = \(channel.channel)\n\(channel.pulses.rendered)"
      }
    case .pca9685(let board):
      text += """
        driver = "pca9685"
        bus = \(TOMLText.quoted(board.bus))
        address = 0x\(String(board.address, radix: 16))
        frequency_hz = \(board.frequency)

        """
      for (id, channel) in board.channels.sorted(by: { $0.key.description < $1.key.description }) {
        text += "\n[servo.steps.\(id)]\nchannel = \(channel.channel)\n\(channel.pulses.rendered)"
      }
    }
    text += inputs.rendered
    if let trafficGuard { text += trafficGuard.rendered }
    if let watchdog {
      text += """

        [watchdog]
        # Restarts the computer when the controller has hung for this long.
        device = \(TOMLText.quoted(watchdog.device))
        timeout_s = \(watchdog.timeout)

        """
    }
    if let metrics {
      text += """

        [metrics]
        # Counters for Prometheus.
        file = \(TOMLText.quoted(metrics))

        """
    }
    return text
  }
}

extension Inputs {
  fileprivate var rendered: String {
    func line(_ key: String, _ sensor: SensorID) -> String {
      guard let wiring = wirings[sensor] else { return "" }
      let source = TOMLText.quoted(wiring.source.text)
      if wiring == InputWiring(wiring.source) { return "\(key) = \(source)\n" }
      return "\(key) = { source = \(source), active_low = \(wiring.isActiveLow), debounce_ms = \(wiring.debounce) }\n"
    }
    var text = ""
    if wirings[.enable] != nil { text += "\n[inputs]\n" + line("enable", .enable) }
    for step in Set(wirings.keys.compactMap(\.step)).sorted(by: { $0.description < $1.description }) {
      text += "\n[inputs.steps.\(step)]\n" + line("clear", .clear(step)) + line("end_open", .endOpen(step))
      text += line("end_closed", .endClosed(step))
    }
    if wirings[.standing] != nil {
      text += "\n[interlock]\n" + line("standing", .standing)
      text += "moving = \"\(interlock.onMoving.rawValue)\"\n"
      text += "lost = \"\(interlock.countsLostAsMoving ? "moving" : "standing")\"\n"
    }
    return text
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
    text += line("ca", feed.credentials.authorities.map(TOMLText.quoted))
    text += line("cert", feed.credentials.certificate.map(TOMLText.quoted))
    text += line("key", feed.credentials.key.map(TOMLText.quoted))
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
    for (id, span) in steps.sorted(by: { $0.key.description < $1.key.description }) {
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

extension ServoPulses {
  fileprivate var rendered: String {
    """
    # Pulses that hold the step at its ends, 400 to 2600 µs.
    closed_us = \(closed)
    open_us = \(open)

    """
  }
}
