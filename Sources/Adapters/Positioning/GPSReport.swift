import Encoding
package import Geography

/// A line of gpsd's JSON protocol (gpsd_json(5)). Members and classes that this program does not need are ignored.
package enum GPSReport: Equatable, Sendable {
  /// A receiver's position. Its time is the arrival time of the line, because a receiver's calendar can be 20 years
  /// off.
  case fix(Fix, device: String?)
  /// A receiver does not know its position.
  case noFix(device: String?)
  /// How many receivers gpsd has.
  case receivers(Int)
  /// gpsd does not understand a command.
  case error(String)
  case other

  /// Size of the longest line, bytes: twice gpsd's own limit.
  package static let longest = 65_536

  package struct Malformed: Error, Equatable {
    package let reason: String
  }

  /// - Parameter time: when the line arrived, seconds of a steady clock.
  package init(parsing line: some Sequence<UInt8>, at time: Double) throws(Malformed) {
    let json: JSON
    do { json = try JSON(parsing: line, maximumDepth: 8) } catch { throw Malformed(reason: error.description) }
    guard let kind = json["class"]?.string else { throw Malformed(reason: "an object has no class") }
    switch kind {
    case "TPV": self = try Self.position(json, time)
    case "DEVICES":
      guard let devices = json["devices"]?.array else { throw Malformed(reason: "DEVICES without devices") }
      self = .receivers(devices.count)
    case "ERROR": self = .error(json["message"]?.string ?? "")
    default: self = .other
    }
  }

  private static func position(_ json: JSON, _ time: Double) throws(Malformed) -> GPSReport {
    let device = json["device"]?.string
    // 2: a fix without height, 3: with it.
    guard let mode = json["mode"]?.integer, (0...3).contains(mode) else {
      throw Malformed(reason: "TPV without a mode")
    }
    func number(_ name: String) throws(Malformed) -> Double? {
      switch json[name] {
      case nil: return nil
      case .integer(let value): return Double(value)
      case .number(let value) where value.isFinite: return value
      default: throw Malformed(reason: "\(name) is not a number")
      }
    }
    guard mode >= 2, let latitude = try number("lat"), let longitude = try number("lon") else {
      return .noFix(device: device)
    }
    guard let position = Coordinate(latitude: latitude, longitude: longitude) else {
      throw Malformed(reason: "there is no such place")
    }
    // No place is farther away than half the earth's circumference, so a larger error is meaningless.
    func positive(_ value: Double?) -> Double? { value.flatMap { $0 > 0 && $0 <= 20_037_508 ? $0 : nil } }
    // The horizontal error; older receivers give one error per axis.
    var accuracy = positive(try number("eph"))
    if accuracy == nil, let x = positive(try number("epx")), let y = positive(try number("epy")) {
      accuracy = Vector(x: x, y: y).length
    }
    return .fix(
      Fix(
        time: time, position: position, accuracy: accuracy, course: try number("track"), speed: try number("speed"),
        // gps.h: STATUS_SIM.
        isSimulated: json["status"] == .integer(8)),
      device: device)
  }
}

/// Chooses one of several receivers: the one that had a fix first, until it has had none for a while. Two receivers'
/// positions would seem to jump, and a receiver without a fix would hide the other's fix.
package struct ReceiverChoice: Sendable {
  private var chosen: (device: String?, time: Double)?

  package init() {}

  /// Whether to use a report.
  ///
  /// - Parameter time: when it arrived, seconds of a steady clock.
  package mutating func takes(_ report: GPSReport, at time: Double) -> Bool {
    func isFree(for device: String?) -> Bool {
      chosen.map { $0.device == device || time - $0.time > Settling.patience } ?? true
    }
    switch report {
    case .fix(_, let device):
      guard isFree(for: device) else { return false }
      chosen = (device, time)
      return true
    case .noFix(let device): return isFree(for: device)
    case .receivers, .error, .other: return true
    }
  }
}
