import Domain
import Encoding

extension Proof {
  /// The `proof` claim.
  ///
  /// - Parameter time: on the controller's clock, milliseconds.
  func json(time: Int64) -> JSON {
    switch self {
    case .beacon(let zone, let isLocated, let beacons):
      [
        "method": .string(method.rawValue), "time": .integer(time), "zone": .string(zone.rawValue),
        "located": .bool(isLocated),
        "beacons": .array(
          beacons.map {
            [
              "major": .integer(Int64($0.major)), "minor": .integer(Int64($0.minor)), "rssi": .integer(Int64($0.rssi)),
              "power": .integer(Int64($0.measuredPower)), "packets": .integer(Int64($0.packets)),
            ]
          }),
      ]
    case .tag(let uid, let content):
      [
        "method": .string(method.rawValue), "time": .integer(time), "uid": .string(uid.description),
        "content": .string(content),
      ]
    case .code(let content):
      ["method": .string(method.rawValue), "time": .integer(time), "content": .string(content)]
    case .heard:
      ["method": .string(method.rawValue), "time": .integer(time)]
    }
  }

  static func read(_ claim: JSON) throws(ProtocolError) -> (Proof, time: Int64) {
    var members = try ObjectReader(claim, of: "proof")
    let time = try members.count("time")
    let proof: Proof
    switch try members.word("method", ProofMethod.self) {
    case .beacon:
      let zone = try members.word("zone", Zone.self)
      let isLocated = try members.bool("located")
      let list = try members.take("beacons", "a list of 1 to 8 beacons") { value in
        value.array.flatMap { (1...8).contains($0.count) ? $0 : nil }
      }
      var beacons: [HeardBeacon] = []
      for item in list {
        let beacon = try HeardBeacon(item)
        guard !beacons.contains(where: { $0.major == beacon.major }) else {
          throw .malformed("two beacons of one major")
        }
        beacons.append(beacon)
      }
      proof = .beacon(zone: zone, isLocated: isLocated, beacons: beacons)
    case .nfc:
      // Upper case only, so that each tag has one spelling.
      let uid = try members.take("uid", "the 4, 7 or 10 bytes of a UID in upper case") { value in
        value.string.flatMap { text in TagUID(text).flatMap { identical($0.description, text) ? $0 : nil } }
      }
      proof = .tag(uid: uid, content: try content(&members))
    case .qr:
      proof = .code(content: try content(&members))
    case .heard:
      proof = .heard
    }
    try members.end()
    return (proof, time)
  }

  private static func content(_ members: inout ObjectReader) throws(ProtocolError) -> String {
    try members.take("content", "1 to \(maximumContent) bytes of text") { value in
      value.string.flatMap { (1...maximumContent).contains($0.utf8.count) ? $0 : nil }
    }
  }
}

extension HeardBeacon {
  fileprivate init(_ value: JSON) throws(ProtocolError) {
    var members = try ObjectReader(value, of: "a beacon")
    self.init(
      major: try members.take("major", "0 to 65535") { $0.integer.flatMap { UInt16(exactly: $0) } },
      minor: try members.take("minor", "0 to 65535") { $0.integer.flatMap { UInt16(exactly: $0) } },
      rssi: try members.take("rssi", "-127 to -1 dBm") { value in
        value.integer.flatMap { (-127 ... -1).contains($0) ? Int($0) : nil }
      },
      measuredPower: try members.take("power", "-128 to 127 dBm") { value in
        value.integer.flatMap { Int8(exactly: $0) }.map(Int.init)
      },
      packets: try members.take("packets", "1 to 1000000") { value in
        value.integer.flatMap { (1...1_000_000).contains($0) ? Int($0) : nil }
      })
    try members.end()
  }
}
