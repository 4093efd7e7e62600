import Certificates
import CommandParts
import Domain
import Encoding
import FileFormats
import Glibc
import MQTT
import Rider
import StepProtocol
import SystemIO
import Terminal
import UserSettings

/// Checks a vehicle's files, then its broker and its controller.
struct VehicleExamination {
  private let settings: Settings
  private let context: Context
  private let interruption: Interruption

  init(_ settings: Settings, _ context: Context, _ interruption: Interruption) {
    self.settings = settings
    self.context = context
    self.interruption = interruption
  }

  /// - Parameter withConnection: whether to contact the broker and the controller.
  /// - Throws: only interruptions.
  func parts(
    withConnection: Bool, showing progress: ProgressLine
  ) throws -> [(Doctor.Area, Examination)] {
    var files = Examination("vehicle")
    examineClock(&files)
    guard let access = try examineFiles(&files), withConnection else { return [(.vehicle, files)] }
    progress.show("connecting to \(access.broker)")
    var broker = Examination("broker")
    var controller = Examination("controller")
    if try examine(access.broker, &broker) {
      progress.show("waiting for the answer of \(printable(access.vehicle.name))")
      try ask(access, &broker, &controller)
    } else {
      controller.find("answer", .warning, "not asked: there is no connection to the broker")
    }
    return [(.vehicle, files), (.broker, broker), (.controller, controller)]
  }

  // MARK: - Files

  /// - Returns: nil if these files do not allow a connection.
  private func examineFiles(_ part: inout Examination) throws -> RiderAccess? {
    let file: VehicleFile
    do {
      let path = try settings.chosenVehicleFile(context)
      file = try VehicleFile(reading: path)
      part.find("file", .good, "\(file.vehicle.name) (\(settings.folders.displayed(path)))")
    } catch let error as ConfigurationError where error.kind == .missing && settings.vehicle.value == nil {
      part.find("file", .warning, "no vehicle is known", "stepctl config import FILE")
      return nil
    } catch let failure as any Failure {
      part.find("file", failure)
      return nil
    }
    guard let rider = file.rider else {
      part.find("token", .warning, "none: without one nothing moves", "stepctl enroll --output request")
      return nil
    }
    let secrets = [rider.deviceKey, file.broker?.tls?.identity?.key].compactMap { $0 }
    for path in secrets where (try? Files.isReadableByOthers(path)) == true {
      part.exitStatus = .noPermission
      part.find("keys", .broken, "others can read \(path)", shellCommand("chmod", "600", path))
    }
    if part.state == .broken { return nil }
    do {
      let access = try file.riderAccess(unlock: context.unlock(interruption))
      part.find("keys", .good, "nobody else can read them, and the token is for this device")
      examine(access.token, &part)
      // Neither the controller nor any other client would answer.
      guard examineSignature(access.tokenText, rider, of: file, &part) else { return nil }
      try examineCertificates(access.broker, for: access.token, &part)
      return access
    } catch let failure as any Failure {
      part.find("keys", failure, remedy(for: rider, file.broker?.tls))
      return nil
    }
  }

  /// What brings missing files back; nil if none is missing. A new access file brings all but the private keys.
  private func remedy(for rider: VehicleFile.Rider, _ tls: Broker.TLS?) -> String? {
    let keys = [rider.deviceKey, tls?.identity?.key].compactMap { $0 }
    let others = [rider.token, tls?.authority, tls?.identity?.certificate].compactMap { $0 }
    if !keys.allSatisfy(Files.exists) { return "stepctl enroll --output request" }
    return others.allSatisfy(Files.exists) ? nil : "stepctl config import FILE"
  }

  private func examine(_ token: Token, _ part: inout Examination) {
    let report = TokenReport(token, at: context.seconds)
    // A token whose time has not begun only needs waiting.
    if report.isValid || isEarly(token) { return part.find("token", report.isValid ? .good : .warning, report.line) }
    part.exitStatus = .noPermission
    part.find("token", .broken, report.line, "stepctl enroll --output request")
  }

  /// Whether a token begins later, by this computer's clock.
  private func isEarly(_ token: Token) -> Bool { context.seconds < token.notBefore }

  /// - Returns: whether a controller may accept the token. The operator may have changed its key.
  private func examineSignature(
    _ text: String, _ rider: VehicleFile.Rider, of file: VehicleFile, _ part: inout Examination
  ) -> Bool {
    guard let operatorKey = file.operatorKey else { return true }
    do throws(ProtocolError) { _ = try Token(verifying: text, by: operatorKey) } catch {
      guard error == .badSignature else {
        part.find(
          "token", .warning, "it is not signed by the operator that the vehicle file names",
          "stepctl config import FILE")
        return true
      }
      part.exitStatus = .badData
      part.find(
        "token", .broken, "\(settings.folders.displayed(rider.token)) is damaged: the signature is not the operator's",
        "stepctl config import FILE")
      return false
    }
    return true
  }

  private func examineCertificates(_ broker: Broker, for token: Token, _ part: inout Examination) throws {
    for file in try broker.tls?.certificateFiles() ?? [] {
      let name = settings.folders.displayed(file.path)
      // The rider's own certificate is renewed with the next token.
      let isOwn = file.path == broker.tls?.identity?.certificate
      if context.seconds < file.begin {
        part.exitStatus = .configuration
        part.find(
          "certificate", .broken,
          "\(name): not valid before \(dateAndTime(file.begin)): this computer's clock is behind, or the operator's ahead",
          WallClock.isKept ? nil : "timedatectl set-ntp true")
        continue
      }
      examine(
        certificate: name, until: file.end, isEnough: isOwn && file.end >= token.expires,
        advice: "ask the operator for new access", &part)
    }
  }

  /// - Parameters:
  ///   - end: its last second, Unix time.
  ///   - isEnough: whether nobody needs it for longer.
  ///   - advice: what to do if it ends soon, or has ended.
  private func examine(
    certificate name: String, until end: Int64, isEnough: Bool = false, advice: String, _ part: inout Examination
  ) {
    let left = end - context.seconds
    let isNear = left < Broker.TLS.CertificateFile.notice && !isEnough
    let state: Examination.State = left < 0 ? .broken : isNear ? .warning : .good
    let time = left < 0 ? "expired \(dateAndTime(end))" : "until \(dateAndTime(end)) (\(span(left)))"
    if state == .broken { part.exitStatus = .configuration }
    part.find("certificate", state, "\(name): \(time)\(state == .good ? "" : "; \(advice)")")
  }

  // MARK: - Broker and controller

  /// - Returns: whether a connection is possible.
  private func examine(_ broker: Broker, _ part: inout Examination) throws -> Bool {
    do {
      let found = try BrokerExamination(broker, until: .now + settings.patience, interruption: interruption)
      part.find("name", .good, "\(broker.host) is \(found.address)")
      part.find("connection", .good, "TCP in \(milliseconds(found.connecting)) to port \(broker.port)")
      part.find(
        "encryption", .good, "\(found.version) in \(milliseconds(found.handshake)); it is the correct broker")
      examine(
        certificate: "the broker's", until: found.certificateEnd, advice: "ask the operator to renew it", &part)
      return part.state != .broken
    } catch let failure as any Failure {
      if interruption.isPending { throw Interrupted() }
      // The error's own hint is to run this command.
      part.exitStatus = failure.exitStatus
      part.find("connection", .broken, failure.description)
      return false
    }
  }

  private func ask(_ access: RiderAccess, _ broker: inout Examination, _ controller: inout Examination) throws {
    do {
      let steps = access.vehicle.steps.map(\.id).filter(access.token.steps.contains)
      let client = try RiderClient(
        access, steps: steps, patience: settings.patience, loop: EventLoop(), interruption: interruption)
      defer { client.close() }
      var states: [String] = []
      var longest = Duration.zero
      for (index, step) in steps.enumerated() {
        let began = Instant.now
        let answer = try client.status(of: step)
        // The first measurement includes the wait for the connection.
        if index > 0 { longest = max(longest, began.duration(to: .now)) }
        states.append("\(step) \(answer.statement.position.state)")
        if let fault = answer.statement.fault {
          controller.find("step", .warning, "the \(step) step: \(fault.sentence) (\(fault.rawValue))")
        }
      }
      broker.find("access", .good, "it lets this rider ask and listen")
      if let step = steps.first { try examine(client, step, &controller) }
      let time = longest == .zero ? "" : " in \(milliseconds(longest))"
      controller.find("answer", .good, "\(states.joined(separator: ", "))\(time)")
      // Nagle's algorithm and delayed acknowledgements together add 40 ms or more to each small message.
      if longest > .milliseconds(40) {
        broker.find(
          "delay", .warning, "small messages wait \(milliseconds(longest)); it may lack `set_tcp_nodelay true`")
      }
    } catch let error as MQTTError {
      broker.find("access", error)
    } catch let error as RiderError {
      if error.isInterruption { throw error }
      try blame(error, access, &broker, &controller)
    }
  }

  /// Which program answers, since when it runs, and what its clock shows.
  private func examine(_ client: RiderClient, _ step: StepID, _ part: inout Examination) throws {
    let (about, clock, roundTrip) = try client.examine(step)
    let here = WallClock.microseconds / 1000 - Int64(roundTrip.inSeconds * 500)
    let since = "runs since \(dateAndTime((here - clock) / 1000)) (\(span(clock / 1000)))"
    guard let about else {
      return part.find("program", .good, "\(since); it does not tell its version")
    }
    part.find("program", .good, "stepd \(about.version), \(since)")
    // The controller read its clock at an unknown moment between question and answer.
    let (ahead, doubt) = (Double(about.time - here) / 1000, roundTrip.inSeconds / 2)
    let size = abs(ahead) < 120 ? "\(tenths(abs(ahead))) s" : span(Int64(abs(ahead)))
    let text = "\(size) \(ahead < 0 ? "behind" : "ahead of") this computer's (± \(milliseconds(roundTrip / 2)))"
    guard abs(ahead) - doubt > Self.mostDifference else {
      return part.find("clock", .good, "the vehicle's: \(text)")
    }
    // A clock under a time service is right, so the vehicle's clock is wrong, and no command on this computer can
    // correct it.
    let advice = WallClock.isKept ? "; on the vehicle, type `timedatectl set-ntp true`" : ""
    part.find(
      "clock", .warning, "the vehicle's: \(text); tokens begin and end by the vehicle's\(advice)",
      WallClock.isKept ? nil : "timedatectl set-ntp true")
  }

  /// The largest clock difference that needs no warning, seconds.
  private static let mostDifference = 2.0

  private func blame(
    _ error: RiderError, _ access: RiderAccess, _ broker: inout Examination, _ controller: inout Examination
  ) throws {
    switch error {
    case .notSent: broker.find("access", error)
    case .refused(let refusal, _) where refusal.code == .tokenNotYetValid && isEarly(access.token):
      broker.find("access", .good, "it lets this rider in")
      controller.find("answer", .warning, "it takes the token from \(dateAndTime(access.token.notBefore)) on")
    case .refused(let refusal, _) where [.tokenExpired, .tokenNotYetValid].contains(refusal.code):
      controller.find("answer", error)
      if TokenReport(access.token, at: context.seconds).isValid {
        controller.find(
          "clock", .broken, "by this computer's clock the token is valid: the two clocks differ",
          "timedatectl set-ntp true")
      }
    default:
      broker.find("access", .good, "it lets this rider in")
      controller.find("answer", error)
    }
  }

  private func examineClock(_ part: inout Examination) {
    WallClock.isKept
      ? part.find("clock", .good, "a time service keeps this computer's")
      : part.find(
        "clock", .warning, "nothing keeps this computer's: tokens may seem to have ended", "timedatectl set-ntp true")
  }

  private func milliseconds(_ time: Duration) -> String { "\(tenths(time.inSeconds * 1000)) ms" }
}
