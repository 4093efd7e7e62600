import Domain
import Foundation
import StepController
import StepProtocol
import SystemIO
import TestSupport
import Testing

@testable import StepDaemon

/// What another open file of this process is, as the kernel sees it. Its configuration it tells itself, and a busy
/// machine may make it late; so errors are compared by their text, in which this process has none.
private let ourselves = OtherDriver(process: getpid(), configuration: nil)

@Suite("The lock of an output") struct OutputLockTests {
  private let folder = try! TemporaryFolder()

  private func driver(_ configuration: String, _ outputs: PWMOutputs) throws -> PulsedServos {
    try PulsedServos(outputs, configuration: configuration, report: { _ in })
  }

  @Test("a PWM channel has one driver, by whichever path and name it is reached, and the second is told who it is")
  func channel() throws {
    let pwm = try PWMFolder()
    try FileManager.default.createDirectory(
      atPath: pwm.folder.path + "/1f00098000.pwm", withIntermediateDirectories: true)
    symlink("../1f00098000.pwm", pwm.folder.path + "/pwmchip0/device")
    symlink(pwm.folder.path, folder.path + "/link")
    var other = pwm.outputs
    other.root = folder.path + "/link"
    other.channels[left]?.chip = .device("1f00098000.pwm")
    do {
      let first = try driver("first.toml", pwm.outputs)
      let error = DriverError.output(
        "channel 1 of 1f00098000.pwm", path: "\(other.root)/pwmchip0/export", ourselves)
      let refused = #expect(throws: DriverError.self) { try driver("second.toml", other) }
      #expect(refused?.description == error.description)
      // The other channel is free.
      other.channels[left]?.channel = 0
      _ = try driver("second.toml", other)
      withExtendedLifetime(first) {}
    }
    // Its thread ends a moment after its owner.
    let deadline = Instant.now + .seconds(30)
    var second: PulsedServos?
    while second == nil, .now < deadline { second = try? driver("second.toml", pwm.outputs) }
    #expect(second != nil)
  }

  @Test("a channel that is held when the first motion begins is not touched, and the fault says by whom")
  func late() throws {
    let pwm = try PWMFolder()
    // As a computer starts: the chip is not there yet, and then both find it.
    let chip = pwm.folder.path + "/pwmchip0"
    rename(chip, pwm.folder.path + "/later")
    let reports = try Mailbox<ServoReport>()
    let early = try PulsedServos(pwm.outputs, configuration: "early.toml") { reports.post($0) }
    rename(pwm.folder.path + "/later", chip)
    let first = try driver("first.toml", pwm.outputs)
    early.execute(.init(step: left, number: 1, action: .prepare(from: .close, to: .open)))
    let error = DriverError.output("channel 1 of pwmchip0", path: "\(chip)/export", ourselves)
    #expect(next(reports)?.outcome == .failed(.failed(error.description)))
    #expect(try pwm.values == [0, 0, 0])
    withExtendedLifetime(first) {}
  }

  @Test("a simulated servo has one driver: of the file that it writes, not of its path")
  func simulated() throws {
    let log = folder.path + "/servo.jsonl"
    symlink(log, folder.path + "/link")
    let reports = try Mailbox<ServoReport>()
    let first = try SimulatedServo(log: log, configuration: "first.toml") { reports.post($0) }
    // Nothing is written before the first motion, so there is nothing to hold either.
    let second = try SimulatedServo(log: folder.path + "/link", configuration: "second.toml") { reports.post($0) }
    let order = ServoOrder(step: left, number: 1, action: .prepare(from: .close, to: .open))
    first.execute(order)
    #expect(next(reports)?.outcome == .ready(at: nil))
    second.execute(order)
    let error = DriverError.output("the simulated servo \(folder.path)/link", path: folder.path + "/link", ourselves)
    #expect(next(reports)?.outcome == .failed(.failed(error.description)))
    let refused = #expect(throws: DriverError.self) {
      try SimulatedServo(log: folder.path + "/link", configuration: "third.toml", report: { _ in })
    }
    #expect(refused?.description == error.description)
    #expect(try TemporaryFolder.text(log).split(separator: "\n").count == 1)
    // Another file has taken its place, and is nobody's yet.
    unlink(log)
    second.execute(order)
    #expect(next(reports)?.outcome == .ready(at: nil))
    first.execute(order)
    #expect(next(reports)?.outcome != .ready(at: nil))
  }

  @Test("a device such as /dev/null takes any number of simulated servos")
  func device() throws {
    let reports = try Mailbox<ServoReport>()
    let servos = try (0..<2).map { _ in
      try SimulatedServo(log: "/dev/null", configuration: "a.toml") { reports.post($0) }
    }
    for servo in servos {
      servo.execute(.init(step: left, number: 1, action: .prepare(from: .close, to: .open)))
      #expect(next(reports)?.outcome == .ready(at: nil))
    }
  }

  @Test("what cannot be seen is said so, and what a holder says is shown as text")
  func texts() {
    let unseen = DriverError.output("channel 0 of pwmchip0", path: "/x/export", .init(nil))
    #expect(
      unseen.description
        == "another program drives channel 0 of pwmchip0: a process that cannot be seen from here; nothing was moved")
    #expect(unseen.hint == "`fuser /x/export` shows who it is")
    let liar = OtherDriver(.init(process: 7, user: 1, answer: Array("\u{1B}[2Jx\nstepd: left: is open".utf8)))
    #expect(liar.description.unicodeScalars.allSatisfy { $0.properties.generalCategory != .control })
    let error = DriverError.vehicle("car", .init(process: 7, configuration: "/a/stepd.toml"))
    #expect(error.description == "another stepd runs for car: pid 7, with /a/stepd.toml; nothing was moved")
    #expect(error.hint == "end it first: `systemctl stop stepd`, or `kill 7`")
    #expect(error.exitStatus == .unavailable)
  }
}

@Suite("The lock of a vehicle's identity") struct VehicleLockTests {
  private let name = "stepctl-test-\(UInt64.random(in: 0 ... .max))"
  private let key = SigningKey()

  /// - Parameter trusted: nobody, as if all other programs were strangers'.
  private func take(_ configuration: String, trusted: Set<UInt32> = []) throws -> VehicleLock {
    try VehicleLock(name, named: "car", key, configuration: configuration, trusted: trusted)
  }

  @Test("is one program's at a time, and the second is told who it is")
  func one() throws {
    let first = try take("first.toml")
    let refused = #expect(throws: DriverError.self) { try take("second.toml") }
    #expect(refused?.description == "another stepd runs for car: pid \(getpid()), with first.toml; nothing was moved")
    #expect(first.stranger == nil)
    first.close()
  }

  @Test(
    "a stranger who has the name keeps nobody off: whatever it answers is no proof",
    arguments: [[], [UInt8](repeating: 1, count: 63), [UInt8](repeating: 1, count: 64) + Array("/etc/stepd.toml".utf8)])
  func stranger(answer: [UInt8]) throws {
    let stranger = try #require(try HeldName(name) { _ in answer })
    #expect(try take("first.toml").stranger == OtherDriver(process: getpid(), configuration: nil))
    // Root and this program's own user need no proof: they could keep it off anyway.
    #expect(throws: DriverError.self) { try take("first.toml", trusted: [geteuid()]) }
    stranger.close()
  }

  @Test("another vehicle's key, and another question's signature, are no proof")
  func copied() throws {
    let other = SigningKey()
    let stranger = try #require(
      try HeldName(name) { other.signature(for: Array("stepd runs for this vehicle\0".utf8) + $0) + [0x61] })
    #expect(try take("first.toml").stranger != nil)
    stranger.close()
  }

  @Test("the holder signs questions of one size, with a sentence in front that nothing of the protocol has")
  func oracle() throws {
    let first = try take("first.toml")
    for size in [1, 31, 33, 64, 2000] {
      #expect(
        try HeldName.ask(name, [UInt8](repeating: 0x65, count: size), until: .now + .seconds(30))?.answer == nil)
    }
    let question = Array("eyJhbGciOiJFZDI1NTE5In0.eyJhIjox".utf8)
    // A question is waited for 50 ms, and a busy machine may make it late.
    let deadline = Instant.now + .seconds(30)
    var said: [UInt8]?
    while said == nil, .now < deadline { said = try HeldName.ask(name, question, until: deadline)?.answer }
    let answer = try #require(said)
    let signature = Array(answer.prefix(64))
    #expect(!key.verificationKey.isValid(signature, for: question))
    #expect(key.verificationKey.isValid(signature, for: Array("stepd runs for this vehicle\0".utf8) + question))
    #expect(Array(answer.dropFirst(64)) == Array("first.toml".utf8))
    first.close()
  }
}
