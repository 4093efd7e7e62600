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

  /// - Parameters:
  ///   - withConnection: whether to contact the broker and the controller.
  ///   - withHardware: whether to examine the controller's hardware, if this computer is the controller.
  ///   - link: whether to look for the vehicle by Bluetooth. `.maybe`: nothing is said of a vehicle that is not heard,
  ///     because few take links.
  /// - Throws: only interruptions.
  func parts(
    withConnection: Bool, withHardware: Bool, link: LinkWish, showing progress: ProgressLine
  ) throws -> [(Doctor.Area, Examination)] {
    var files = Examination("vehicle")
    examineClock(&files)
    let rider = try examineFiles(&files)
    var hardware = Examination("controller")
    if withHardware, let path = try? settings.chosenVehicleFile(context) {
      progress.show("checking the controller's hardware")
      try ControllerCheck.examine(path, &hardware, interruption)
    }
    guard let access = rider else {
      guard !hardware.findings.isEmpty else { return [(.vehicle, files)] }
      hardware.find("answer", .warning, "not asked: that takes a rider's files")
      return [(.vehicle, files), (.controller, hardware)]
    }
    var parts = withConnection ? try examineNetwork(access, &files, hardware, showing: progress) : []
    if link != .no {
      progress.show("looking for \(printable(access.vehicle.name)) by Bluetooth")
      if let part = try examineLink(access, isWanted: link == .yes) { parts.append((.link, part)) }
    }
    return [(.vehicle, files)] + parts
  }

  enum LinkWish { case no, maybe, yes }

  /// - Parameter hardware: what is known of the controller already.
  private func examineNetwork(
    _ access: RiderAccess, _ files: inout Examination, _ hardware: Examination, showing progress: ProgressLine
  ) throws -> [(Doctor.Area, Examination)] {
    progress.show("connecting to \(access.broker)")
    var broker = Examination("broker")
    var controller = hardware
    if let connecting = try examine(access.broker, &broker) {
      progress.show("waiting for the answer of \(printable(access.vehicle.name))")
      let answer = try ask(access, &broker, &controller, isNear: connecting < Self.nearby)
      if answer.isGiven, !TokenReport(access.token, at: context.seconds).isValid {
        correct(&files, access.token, lead: answer.lead)
      }
    } else {
      controller.find("answer", .warning, "not asked: there is no connection to the broker")
    }
    return [(.broker, broker), (.controller, controller)]
  }

  // MARK: - Link

  /// How long the vehicle may take to be heard and connected to, where nobody asked for that.
  private static let linkPatience = Duration.seconds(3)
  /// Round trips that are measured. The first ones take longer: the link becomes faster while it is used.
  private static let roundTrips = 7
  /// A question that takes longer is worth a warning.
  private static let slowLink = Duration.milliseconds(500)

  /// - Returns: nil if there is nothing to say.
  private func examineLink(_ access: RiderAccess, isWanted: Bool) throws -> Examination? {
    var part = Examination("link")
    do {
      guard let radio = try settings.via(.bluetooth).radio, let step = access.ownSteps.first else {
        return nil
      }
      let began = Instant.now
      let patience = isWanted ? settings.patience : min(settings.patience, Self.linkPatience)
      let client = try RiderClient(
        access, steps: [step], patience: patience, loop: EventLoop(), via: .bluetooth(radio), interruption: interruption
      )
      defer { client.close() }
      var trips: [Duration] = []
      for _ in 0..<Self.roundTrips { trips.append(try client.examine(step).roundTrip) }
      guard let times = client.linkTimes else { return nil }
      part.find("heard", .good, "with \(radio), after \(milliseconds(began.duration(to: times.heard)))")
      part.find("connection", .good, "in \(milliseconds(times.heard.duration(to: times.linked)))")
      // The first one waits for the link.
      let usual = trips.dropFirst().sorted()[(Self.roundTrips - 1) / 2]
      let isSlow = usual > Self.slowLink
      let advice = isSlow ? "; one of the adapters may lack Bluetooth's data length extension" : ""
      part.find("answer", isSlow ? .warning : .good, "in \(milliseconds(usual))\(advice)")
    } catch let error as RiderError {
      if error.isInterruption { throw error }
      // Without the word of somebody who wants a link, a vehicle that takes none is not worth a word.
      guard isWanted || part.state != .good else { return nil }
      part.find("answer", error)
    } catch let failure as any Failure {
      if failure.isInterruption { throw failure }
      guard isWanted else { return nil }
      part.find("connection", failure)
    }
    return part
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
      do { try file.broker.map { try examineCertificates($0, for: nil, &part) } } catch let failure as any Failure {
        part.find("certificate", failure)
      }
      part.find("token", .warning, "none: without one nothing moves", "stepctl enroll --output request")
      return nil
    }
    for path in file.privateKeys where (try? Files.isReadableByOthers(path)) == true {
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
      part.find("keys", failure, remedy(for: file))
      return nil
    }
  }

  /// What brings missing files back; nil if none is missing. A new access file brings all but the private keys.
  private func remedy(for file: VehicleFile) -> String? {
    if !file.privateKeys.allSatisfy(Files.exists) { return "stepctl enroll --output request" }
    return file.accessFiles.allSatisfy(Files.exists) ? nil : "stepctl config import FILE"
  }

  private func examine(_ token: Token, _ part: inout Examination) {
    let report = TokenReport(token, at: context.seconds)
    // A token whose time has not begun only needs waiting.
    if report.isValid || isEarly(token) { return part.find("token", report.isValid ? .good : .warning, report.line) }
    part.exitStatus = .noPermission
    part.find("token", .broken, report.line, "stepctl enroll --output request")
  }

  /// Whether a token begins later, by this computer's clock.
  private func isEarly(_ token: Token) -> Bool { token.validity.state(at: context.seconds) == .notYet }

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

  /// - Parameter token: nil if there is no rider.
  private func examineCertificates(_ broker: Broker, for token: Token?, _ part: inout Examination) throws {
    for file in try broker.tls?.certificateFiles() ?? [] {
      let name = settings.folders.displayed(file.path)
      // The rider's own certificate is renewed with the next token.
      let isOwn = file.path == broker.tls?.identity?.certificate
      if file.condition(at: context.seconds) == .early {
        part.exitStatus = .configuration
        let meaning = Broker.TLS.CertificateFile.meaning(ofEarly: dateAndTime(file.begin))
        part.find("certificate", .broken, "\(name): \(meaning)", Broker.TLS.CertificateFile.clockRemedy)
        continue
      }
      examine(
        certificate: name, until: file.end, isEnough: isOwn && token.map { file.end >= $0.expires } == true,
        advice: isOwn
          ? "ask the operator for new access" : "the operator has to make the vehicle again, and to give new access",
        &part)
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

  /// Nagle's algorithm and delayed acknowledgements together add this, or more, to each small message.
  private static let leastDelay = Duration.milliseconds(40)
  /// To a broker that takes longer to connect to, small messages may take that long without them.
  private static let nearby = Duration.milliseconds(10)

  /// - Returns: how long connecting took; nil if no connection is possible.
  private func examine(_ broker: Broker, _ part: inout Examination) throws -> Duration? {
    do {
      let found = try BrokerExamination(broker, until: .now + settings.patience, interruption: interruption)
      part.find("name", .good, "\(broker.host) is \(found.address)")
      part.find("connection", .good, "TCP in \(milliseconds(found.connecting)) to port \(broker.port)")
      part.find(
        "encryption", .good, "\(found.version) in \(milliseconds(found.handshake)); it is the correct broker")
      examine(
        certificate: "the broker's", until: found.certificateEnd, advice: "ask the operator to renew it", &part)
      return part.state == .broken ? nil : found.connecting
    } catch let failure as any Failure {
      if interruption.isPending { throw Interrupted() }
      // The error's own hint is to run this command.
      part.exitStatus = failure.exitStatus
      part.find("connection", .broken, failure.description)
      if case .cannotConnect = failure as? MQTTError { examineBrokerFiles(of: broker, &part) }
      return nil
    }
  }

  /// Says which file keeps a broker of this computer from starting. Its configuration is in the vehicle's folder, and
  /// so is each rider's folder.
  private func examineBrokerFiles(of broker: Broker, _ part: inout Examination) {
    guard ["localhost", "127.0.0.1", "::1"].contains(broker.host),
      let path = try? settings.chosenVehicleFile(context)
    else { return }
    let folder = Files.parent(of: path)
    let riders = Files.parent(of: folder)
    for place in Files.name(of: riders) == RiderPaths.folder ? [folder, Files.parent(of: riders)] : [folder] {
      guard let obstacle = (try? BrokerFile(reading: "\(place)/mosquitto.conf"))?.obstacle else { continue }
      return part.find("files", .broken, obstacle.description, obstacle.remedy)
    }
  }

  /// - Parameter isNear: whether the broker answers so soon that a delay must have another reason than the way.
  /// - Returns: whether the controller takes the token, and how far its clock is ahead of this computer's, seconds.
  private func ask(
    _ access: RiderAccess, _ broker: inout Examination, _ controller: inout Examination, isNear: Bool
  ) throws -> (isGiven: Bool, lead: Double?) {
    let steps = access.ownSteps
    guard !steps.isEmpty else {
      controller.find("answer", .broken, "not asked: the token is for none of the vehicle's steps")
      return (false, nil)
    }
    do {
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
      let lead = try steps.first.flatMap { try examine(client, $0, &controller) }
      let time = longest == .zero ? "" : " in \(milliseconds(longest))"
      controller.find("answer", .good, "\(states.joined(separator: ", "))\(time)")
      // A busy computer delays one message, and not each.
      var shortest = longest
      for _ in 0..<3 where isNear && shortest > Self.leastDelay {
        let began = Instant.now
        _ = try client.status(of: steps[0])
        shortest = min(shortest, began.duration(to: .now))
      }
      if isNear, shortest > Self.leastDelay {
        broker.find(
          "delay", .warning, "small messages wait \(milliseconds(shortest)); it may lack `set_tcp_nodelay true`")
      }
      return (true, lead)
    } catch let error as MQTTError {
      broker.find("access", error)
    } catch let error as RiderError {
      if error.isInterruption { throw error }
      try blame(error, access, &broker, &controller)
    }
    return (false, nil)
  }

  /// The controller takes a token that this computer's clock calls invalid. The cause is a clock: it is named first.
  private func correct(_ part: inout Examination, _ token: Token, lead: Double?) {
    // The broker has taken the rider's certificate.
    let mistaken: Set = ["clock", "token", "certificate"]
    part.findings.removeAll { $0.state != .good && mistaken.contains($0.subject) || $0.subject == "clock" }
    let distance = lead.map { "\(span(Int64(abs($0).rounded()))) \($0 < 0 ? "ahead of" : "behind") " } ?? "not "
    let advice = WallClock.isKept ? "; a time service keeps this one, so look at the vehicle's" : ""
    part.findings.insert(
      .init(
        subject: "clock", state: .warning,
        text: "this computer's is \(distance)the vehicle's, by which the token is valid\(advice)",
        remedy: WallClock.isKept ? nil : "timedatectl set-ntp true"), at: 0)
    part.find("token", .good, "\(printable(token.subject)): the vehicle takes it")
  }

  /// Which program answers, since when it runs, and what its clock shows.
  ///
  /// - Returns: how far its clock is ahead of this computer's, seconds; nil if it does not tell.
  private func examine(_ client: RiderClient, _ step: StepID, _ part: inout Examination) throws -> Double? {
    let (about, clock, roundTrip) = try client.examine(step)
    let here = WallClock.microseconds / 1000 - Int64(roundTrip.inSeconds * 500)
    let since = "runs since \(dateAndTime((here - clock) / 1000)) (\(span(clock / 1000)))"
    guard let about else {
      part.find("program", .good, "\(since); it does not tell its version")
      return nil
    }
    part.find("program", .good, "stepd \(about.version), \(since)")
    // The controller read its clock at an unknown moment between question and answer.
    let (ahead, doubt) = (Double(about.time - here) / 1000, roundTrip.inSeconds / 2)
    let size = abs(ahead) < 120 ? "\(tenths(abs(ahead))) s" : span(Int64(abs(ahead)))
    let text = "\(size) \(ahead < 0 ? "behind" : "ahead of") this computer's (± \(milliseconds(roundTrip / 2)))"
    guard abs(ahead) - doubt > Self.mostDifference else {
      part.find("clock", .good, "the vehicle's: \(text)")
      return ahead
    }
    // A clock under a time service is right, so the vehicle's clock is wrong, and no command on this computer can
    // correct it.
    let advice = WallClock.isKept ? "; on the vehicle, type `timedatectl set-ntp true`" : ""
    part.find(
      "clock", .warning, "the vehicle's: \(text); tokens begin and end by the vehicle's\(advice)",
      WallClock.isKept ? nil : "timedatectl set-ntp true")
    return ahead
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
      if TokenReport(access.token, at: context.seconds).isValid {
        controller.exitStatus = error.exitStatus
        controller.find(
          "clock", .broken, "the vehicle's and this computer's differ: by this computer's the token is valid",
          "timedatectl set-ntp true")
      }
      controller.find("answer", error)
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
