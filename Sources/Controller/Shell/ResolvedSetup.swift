import Bluetooth
import Configuration
import Domain
import MQTT
import StepController
import StepProtocol

/// What `ControllerSetup` is going to be. Goes when Configuration builds it.
struct ResolvedSetup {
  let vehicle: Vehicle
  let topic: TopicPrefix
  let broker: MQTT.Broker
  let journal: String
  let installed: Position
  let keys: Controller.Keys
  let policy: Policy
  var secrets = StepSecrets()
  let profile: MotionProfile
  let servo: ServoHardware
  var beaconRadios: [StepID: RadioSpec] = [:]

  init(_ setup: ControllerSetup) throws {
    vehicle = setup.vehicle
    topic = setup.topic
    broker = MQTT.Broker(
      host: setup.broker.host, port: setup.broker.port,
      tls: .init(
        authority: setup.broker.ca,
        identity: .init(certificate: setup.certificate.cert, key: setup.certificate.key)))
    journal = setup.journal
    installed = setup.servo.installed
    let operatorKey: VerificationKey
    do throws(KeyError) { operatorKey = try VerificationKey(setup.keys.operatorKey) } catch {
      throw ConfigurationError("[keys] operator", "\(error)")
    }
    keys = Controller.Keys(
      decryption: try KeyFile.decryptionKey(setup.keys.encryption),
      signing: try KeyFile.signingKey(setup.keys.signing), operatorKey: operatorKey)
    policy = Policy(
      methods: setup.policy.proofs, acceptsStatic: setup.policy.acceptsStatic, zone: setup.policy.zone,
      proofAge: Int64(setup.policy.proofAge * 1000))
    profile = MotionProfile(travel: Int64(setup.servo.travel * 1000), limit: Int64(setup.servo.limit * 1000))
    servo =
      switch setup.servo.driver {
      case .simulated(let log): .simulated(log: log)
      case .pwm(let pwm):
        .pwm(
          PWMOutputs(
            root: pwm.root, frequency: pwm.frequency,
            channels: pwm.outputs.mapValues {
              PWMChannel(chip: $0.chip, channel: $0.channel, closedPulse: $0.closedPulse, openPulse: $0.openPulse)
            }))
      }
    for (step, source) in setup.beacon.steps {
      secrets.minors[step] = RotatingMinor(
        secret: try KeyFile.beaconSecret(source.secret), step: step, period: setup.beacon.period)
      guard let adapter = source.adapter else { continue }
      let radio: RadioSpec
      do throws(MalformedRadioSpec) { radio = try RadioSpec(adapter) } catch {
        throw ConfigurationError("[beacon.steps.\(step)] adapter", "\(error)")
      }
      guard radio.canAdvertise else {
        throw ConfigurationError("[beacon.steps.\(step)] adapter", "\(RadioError.cannotAdvertise(radio: adapter))")
      }
      beaconRadios[step] = radio
    }
    for tag in setup.tags { secrets.tags[tag.uid] = .init(step: tag.step, keys: tag.keys) }
  }
}
