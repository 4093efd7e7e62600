import Domain
import Glibc
import StepController
import StepProtocol
import StepdConfiguration
import SystemIO

/// A vehicle's identity on this computer: one program at a time answers for the vehicle, and drives its steps.
///
/// `OutputLock` keeps two programs off one servo, and the journal's lock keeps them off one journal. This one also
/// covers a copy of the vehicle's folder with other outputs and another journal: two such programs would answer each
/// question twice, and a rider's command would move a step by one or the other.
///
/// **Where.** No file is the same in each copy, so it is a `HeldName` with the vehicle's UUID. All programs of the
/// computer see it, except those in another network namespace, as in a container.
///
/// **Who can hold it.** Anybody can take the name while it is free, also to keep stepd off, so a name alone counts for
/// nothing. It counts if the holder is root or this program's own user, who could keep it off anyway, or if the holder
/// signs this program's random question with the vehicle's key. The name of a stranger, or of a holder that answers
/// nothing, is passed over: stepd runs, says so, and is without this lock as long as the stranger has the name. So a
/// stranger can make this one of the three locks useless, and never keep the vehicle from its riders.
///
/// The text that is signed begins with a sentence that has spaces and a zero byte. Nothing that the protocol signs has
/// these (RFC 7515 5.1), so a stranger who asks gets no signature for anything else.
///
/// **How it ends.** With the program, also after SIGKILL.
final class VehicleLock: Sendable {
  private static let sentence = Array("stepd runs for this vehicle\0".utf8)
  private static let questionSize = 32
  private static let signatureSize = 64

  /// Nil if a stranger has it.
  private let name: HeldName?
  /// Whoever has the name and is no stepd of this vehicle, for the log.
  let stranger: OtherDriver?

  /// - Throws: `DriverError` if another program runs for the vehicle, or `SystemError`.
  convenience init(_ setup: ControllerSetup) throws {
    try self.init(
      "stepd/vehicle/\(setup.vehicle.uuid)", named: setup.vehicle.name, setup.keys.signing,
      configuration: setup.file.absolutePath)
  }

  /// - Parameters:
  ///   - vehicle: the vehicle's name, for errors.
  ///   - key: the key of the vehicle's statements.
  ///   - configuration: the path of this program's configuration, which others are told.
  ///   - trusted: the users whose programs are believed without a proof.
  init(
    _ name: String, named vehicle: String, _ key: SigningKey, configuration: String,
    trusted: Set<UInt32> = [0, geteuid()]
  ) throws {
    let question = (0..<Self.questionSize).map { _ in UInt8.random(in: 0...255) }
    let attempt = try HeldName.take(name, asking: question) { question in
      guard question.count == Self.questionSize else { return [] }
      return key.signature(for: Self.sentence + question) + Array(configuration.utf8)
    }
    switch attempt {
    case .taken(let name): (self.name, stranger) = (name, nil)
    case .held(let holder):
      let answer = holder.answer ?? []
      let isProved = key.verificationKey.isValid(
        Array(answer.prefix(Self.signatureSize)), for: Self.sentence + question)
      let other = OtherDriver(
        .init(
          process: holder.process, user: holder.user,
          answer: answer.count > Self.signatureSize ? Array(answer.dropFirst(Self.signatureSize)) : nil))
      if isProved || holder.user.map(trusted.contains) == true { throw DriverError.vehicle(vehicle, other) }
      (self.name, stranger) = (nil, OtherDriver(process: holder.process, configuration: nil))
    }
  }

  /// Gives the identity up. From here on no thread of this signs anything.
  func close() { name?.close() }
}

extension ControllerFile {
  /// As other programs of this computer can find it.
  var absolutePath: String {
    guard let resolved = realpath(path, nil) else { return path }
    defer { free(resolved) }
    return String(cString: resolved)
  }
}
