import Certificates
package import Domain
import Encoding
import FileFormats
import SystemIO

/// A client that may see the steps' status, and nothing else: a gateway, a dashboard, a home. It has no token, so it
/// cannot ask, and the broker's access list only lets it read.
package struct WatcherPlan: Sendable {
  package var name: RiderName
  /// Seconds; whole days only.
  package var lifetime: Int64
  /// Whether to make the messages by which Home Assistant finds the steps.
  package var isForHomeAssistant: Bool

  package init(name: RiderName, lifetime: Int64, isForHomeAssistant: Bool) {
    (self.name, self.lifetime, self.isForHomeAssistant) = (name, lifetime, isForHomeAssistant)
  }
}

/// The result of provisioning a watcher.
package struct WatcherSummary: Sendable {
  /// The path from the vehicle's folder.
  package let folder: String
  package let files: [String]
  /// The topics that it may read.
  package let topics: [String]
  /// The end of its certificate, Unix time.
  package let end: Int64
}

extension VehicleFolder {
  /// Makes `watchers/NAME`: a certificate, its key, and the authority's certificate.
  ///
  /// - Parameter now: Unix time.
  package func provisionWatcher(_ plan: WatcherPlan, now: Int64) throws -> WatcherSummary {
    try checkFinished()
    let vehicle = try readVehicleFile()
    let topic = try vehicle.present(vehicle.topic, "topic")
    let steps = vehicle.vehicle.steps
    let name = "\(VehiclePaths.watchers)/\(plan.name)"
    guard !Files.exists(path(name)) else { throw ProvisioningError.watcherExists(path(name)) }
    let authority = try VehicleFolder(place.path).readAuthority()
    let role = CertificateRole.client(.watcher(of: vehicle.vehicle.uuid))
    var files: [NewFile] = []
    let end = try about(path(name)) {
      let key = try PrivateKey()
      let certificate = try authority.issue(role, to: key, now: now, days: plan.lifetime / 86_400)
      files = [
        NewFile("ca.pem", try authority.certificate.pem()), NewFile("watcher.pem", try certificate.pem()),
        NewFile("watcher.key", try key.pem(), isPrivate: true),
      ]
      return try certificate.end()
    }
    if plan.isForHomeAssistant {
      let messages = steps.map { Self.discovery(of: $0, vehicle.vehicle, topic).text + "\n" }
      files.append(NewFile("homeassistant.jsonl", messages.joined()))
    }
    try Files.createFolder(path(VehiclePaths.watchers), mode: 0o700)
    let new = path("\(VehiclePaths.watchers)/.\(plan.name).new")
    // Left by an interrupted run, and useless.
    try StagingFolder.remove(new)
    let staging = try StagingFolder(new)
    for file in files { try staging.write(file) }
    try staging.synchronize()
    try staging.become(path(name))
    return WatcherSummary(
      folder: name, files: files.map { "\(name)/\($0.name)" },
      topics: steps.map { topic.status($0.id) } + [topic.availability], end: end)
  }

  /// A message by which Home Assistant finds a step (MQTT discovery), and its topic. The template reads a statement (a
  /// compact JWS) without checking its signature, so no other client may write to the statement's topic.
  private static func discovery(of step: Step, _ vehicle: Vehicle, _ topic: TopicPrefix) -> JSON {
    let statement =
      "(value_json.statement.split('.')[1] | replace('-', '+') | replace('_', '/') ~ '==')"
      + " | base64_decode | from_json"
    let identifier = "stepctl_\(vehicle.uuid)_\(step.id)"
    let payload: JSON = [
      "name": .string("\(step.id) step"), "unique_id": .string(identifier), "device_class": "opening",
      "state_topic": .string(topic.status(step.id)),
      "value_template": .string(
        "{% set position = (\(statement)).position %}{{ position if position in ['open', 'close'] else 'None' }}"),
      "payload_on": "open", "payload_off": "close", "availability_topic": .string(topic.availability),
      "payload_available": "online", "payload_not_available": "offline",
      "device": [
        "identifiers": [.string("stepctl_\(vehicle.uuid)")], "name": .string(vehicle.name), "manufacturer": "stepctl",
      ],
    ]
    return [
      "topic": .string("homeassistant/binary_sensor/\(identifier)/config"), "retain": true,
      "payload": .string(payload.text),
    ]
  }
}
