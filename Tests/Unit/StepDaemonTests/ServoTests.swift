import TestSupport
import Foundation
import StepController
import StepDaemon
import Domain
import Testing

@Suite("Servo drivers") struct ServoTests {
  let folder = try! TemporaryFolder()

  @Test("the simulated servo appends one object a line when a motion begins")
  func simulated() throws {
    var servo = SimulatedServo(log: folder.path + "/servo.jsonl")
    try servo.begin(left, from: .close, to: .open)
    try servo.begin(right, from: .unknown, to: .close)
    let lines = try String(contentsOfFile: folder.path + "/servo.jsonl", encoding: .utf8).split(separator: "\n")
    #expect(lines.count == 2)
    let first = try JSONSerialization.jsonObject(with: Data(lines[0].utf8)) as! [String: Any]
    #expect(first["step"] as? String == "left")
    #expect(first["from"] as? String == "close")
    #expect(first["to"] as? String == "open")
    #expect(abs((first["time_s"] as! Double) - Date().timeIntervalSince1970) < 5)
  }

  /// What the kernel shows of a PWM chip with one exported channel (Documentation/driver-api/pwm.rst).
  func sysfs() throws -> String {
    let channel = folder.path + "/pwmchip0/pwm1"
    try FileManager.default.createDirectory(atPath: channel, withIntermediateDirectories: true)
    for name in ["enable", "period", "duty_cycle"] {
      try "0".write(toFile: "\(channel)/\(name)", atomically: false, encoding: .utf8)
    }
    return channel
  }

  @Test("PWM: nothing before the first motion, then a 50 Hz frame and the pulses of the configuration")
  func pwm() throws {
    let channel = try sysfs()
    func value(_ name: String) throws -> String { try String(contentsOfFile: "\(channel)/\(name)", encoding: .utf8) }
    var servo = PWMServo(
      root: folder.path, frequency: 50,
      channels: [left: .init(chip: 0, channel: 1, closedPulse: 1_000, openPulse: 2_000)])
    #expect(try value("enable") == "0")
    #expect(try value("period") == "0")
    try servo.begin(left, from: .close, to: .open)
    #expect(try value("period") == "20000000")
    #expect(try value("enable") == "0")
    try servo.move(left, to: 0)
    #expect(try value("duty_cycle") == "1000000")
    #expect(try value("enable") == "1")
    try servo.move(left, to: 0.25)
    #expect(try value("duty_cycle") == "1250000")
    try servo.move(left, to: 1)
    #expect(try value("duty_cycle") == "2000000")
    servo.release(left)
    #expect(try value("enable") == "0")
  }

  @Test("PWM: a channel that is not there, or not ours to write, says which")
  func missing() throws {
    var servo = PWMServo(
      root: folder.path, frequency: 50,
      channels: [left: .init(chip: 3, channel: 1, closedPulse: 1_000, openPulse: 2_000)])
    let path = "\(folder.path)/pwmchip3/export"
    #expect(throws: ServoError.failed("cannot open \(path): No such file or directory")) {
      do throws(ServoError) { try servo.begin(left, from: .close, to: .open) } catch { throw error }
    }
    #expect(throws: ServoError.failed("no PWM channel is configured for right")) {
      do throws(ServoError) { try servo.begin(right, from: .close, to: .open) } catch { throw error }
    }
  }
}
