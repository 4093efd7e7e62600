import Encoding
import Domain
import StepProtocol

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
      cert = \(TOMLText.quoted(broker.certificate.cert))
      key = \(TOMLText.quoted(broker.certificate.key))
      # host, port and ca are the vehicle file's unless they stand here.

      """
    if let host = broker.host { text += "host = \(TOMLText.quoted(host))\n" }
    if let port = broker.port { text += "port = \(port)\n" }
    if let ca = broker.ca { text += "ca = \(TOMLText.quoted(ca))\n" }
    let proofs = ProofMethod.allCases.filter(policy.proofs.contains).map { TOMLText.quoted($0.rawValue) }
    text += """

      [keys]
      # Private (mode 0600): what commands are decrypted and statements are signed with.
      encryption = \(TOMLText.quoted(keys.encryption))
      signing = \(TOMLText.quoted(keys.signing))
      # Public: what riders' tokens are signed with.
      operator = "\(Base64URL.encode(keys.operatorKey))"

      [policy]
      # The farthest a rider may be: "immediate" (below 0.5 m) or "near" (up to 3 m).
      zone = "\(policy.zone.rawValue)"
      # The kinds of proof that are accepted: "beacon", "nfc", "qr".
      proofs = [\(proofs.joined(separator: ", "))]
      # Whether identifiers that can be copied are enough: beacons that always send the same,
      # plain tags, and codes.
      static = \(policy.acceptsStatic)
      # How old a proof of presence may be, 1 to 60 seconds.
      proof_age_s = \(TOMLText.number(policy.proofAge))

      """
    if beacon != BeaconSettings() {
      text += """

        [beacon]
        # How long each minor of the steps' iBeacons lasts, 1 to 3600 seconds.
        period_s = \(beacon.period)

        """
    }
    for (id, source) in beacon.steps.sorted(by: { $0.key.description < $1.key.description }) {
      text += """

        [beacon.steps.\(id)]
        # Private (mode 0600): what the minors are computed from.
        secret = \(TOMLText.quoted(source.secret))

        """
      if let adapter = source.adapter { text += "adapter = \(TOMLText.quoted(adapter))\n" }
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
      travel_s = \(TOMLText.number(servo.travel))
      limit_s = \(TOMLText.number(servo.limit))
      # Where the steps stand when there is no journal yet.
      installed = "\(servo.installed.rawValue)"

      """
    switch servo.driver {
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
      for (id, output) in pwm.outputs.sorted(by: { $0.key.description < $1.key.description }) {
        text += """

          [servo.steps.\(id)]
          chip = \(output.chip)
          channel = \(output.channel)
          # Pulses that hold the step at its ends, 400 to 2600 µs.
          closed_us = \(output.closedPulse)
          open_us = \(output.openPulse)

          """
      }
    }
    return text
  }
}
