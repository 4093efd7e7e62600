import Access
import CodeReading
import CommandParts
import Domain
import FileFormats
import Glibc
import Rider
import StepProtocol
import SystemIO
import Terminal

/// The source of an imported vehicle.
enum ImportSource {
  /// A file that `provision token` made, the text of a vehicle's code, or a picture or camera that shows a code. `-`
  /// means text on standard input.
  case file(String)
  /// Pictures of a vehicle's code or of an access file, or a camera, as in `--qr`. An access file may consist of
  /// several codes, in any order.
  case pictures([String])

  /// - Parameters:
  ///   - patience: how long to look through a camera.
  ///   - progress: shows the wait for a camera.
  func read(_ context: Context, _ patience: Duration, _ progress: ProgressLine) throws -> ImportedVehicle {
    switch self {
    case .file(let path) where Self.isPicture(path): try Self.scan([path], context, patience, progress)
    case .file(let path): try Self.read(path, context)
    case .pictures(let sources): try Self.scan(sources, context, patience, progress)
    }
  }

  /// Whether the source is a camera, or begins like a picture (PNG, third edition, 5.2; ITU-T T.81, B.1.1.3). A pipe is
  /// not examined, because its data could not be read a second time.
  private static func isPicture(_ path: String) -> Bool {
    var status = stat()
    guard stat(path, &status) == 0 else { return false }
    switch status.st_mode & S_IFMT {
    case S_IFCHR: return true
    case S_IFREG:
      guard let file = try? Descriptor.open(path, O_RDONLY) else { return false }
      var head: [UInt8] = [0, 0, 0, 0]
      guard Glibc.read(file.number, &head, head.count) == head.count else { return false }
      return head == [0x89, 0x50, 0x4E, 0x47] || head[..<3] == [0xFF, 0xD8, 0xFF]
    default: return false
    }
  }

  private static func read(_ path: String, _ context: Context) throws -> ImportedVehicle {
    if path == "-" {
      return try imported(context.typed(atMost: largestText), from: "standard input", context)
    }
    if Files.isFolder(path) {
      return try ImportedVehicle(reading: path + (path.hasSuffix("/") ? "" : "/") + RiderPaths.vehicle)
    }
    let other = CommandFailure(.badData, "\(path): not an access file, a code's text or a picture (PNG, JPEG)")
    let bytes: [UInt8]
    do throws(SystemError) { bytes = try Files.read(path, limit: largestText) } catch {
      if error.code == EFBIG { throw other }
      throw error
    }
    // An SVG picture of a code begins with an angle bracket.
    guard !bytes.contains(0), bytes.first != UInt8(ascii: "<") else { throw other }
    let text = String(decoding: bytes, as: UTF8.self)
    // Every vehicle file contains an equals sign, and no compact JWS does. A mail around one has some, too.
    if text.contains("="), ReceivedText.texts(in: text).isEmpty { return try ImportedVehicle(reading: path) }
    return try imported(text, from: path, context)
  }

  /// Bytes: more than a mail with an access file in it.
  private static let largestText = 1 << 16

  /// Takes the first text in a mail that can be used; the errors are about the first one.
  private static func imported(_ text: String, from name: String, _ context: Context) throws -> ImportedVehicle {
    var first: Reason?
    let texts = ReceivedText.texts(in: text)
    // An editor may begin its files with a byte order mark.
    for text in texts.isEmpty ? [text.filter { !$0.isWhitespace && $0 != "\u{FEFF}" }] : texts {
      switch verified(text, context.seconds) {
      case .success(let handed): return try imported(handed, context)
      case .failure(let reason): first = first ?? reason
      }
    }
    throw CommandFailure(.badData, "\(name): \(first?.description ?? "there is no text in it")", hint: first?.hint)
  }

  /// Reads the code of the only vehicle in the pictures, or the first code that a camera sees.
  private static func scan(
    _ sources: [String], _ context: Context, _ patience: Duration, _ progress: ProgressLine
  ) throws -> ImportedVehicle {
    // Only pictures need this handler. A file can be a pipe without a writer, and there a signal must end the process.
    let interruption = try context.interruption()
    defer { progress.clear() }
    var parts = CodeParts()
    func show(_ left: Duration) {
      let seen = parts.progress.map { " (\($0.seen) of \($0.count) seen)" } ?? ""
      progress.show("show the vehicle's code to the camera\(seen), \(Int(left.inSeconds.rounded(.up))) s left")
    }
    var found: [Handed] = []
    var problem = ""
    func take(_ text: String, _ name: String) {
      switch Self.verified(text, context.seconds) {
      case .success(let handed): found.append(handed)
      case .failure(let reason): problem = "\(name): \(reason)"
      }
    }
    let names = sources.joined(separator: ", ")
    for source in sources {
      let source = try CodeSource.open(source)
      let (name, isCamera) = (source.name, source.isCamera)
      var reader = try CodeReader(source, patience: patience, interruption: interruption)
      problem = "there is no code in \(name)"
      var isEmpty = true
      do {
        while let bytes = try reader.next(progress: show) {
          isEmpty = false
          let text = String(decoding: bytes, as: UTF8.self)
          if try !parts.take(text) { take(text, name) }
          let isWhole = parts.progress.map { $0.seen == $0.count } ?? false
          if isCamera, isWhole || !found.isEmpty { break }
        }
      } catch CodeReaderError.timedOut where parts.progress == nil {
        problem = "the camera saw no vehicle's code in \(tenths(patience.inSeconds)) s"
      } catch CodeReaderError.timedOut {}
      // A picture without a code is reported, even if the other pictures have codes.
      if isEmpty, !isCamera { throw CommandFailure(.badData, problem) }
    }
    if let text = try parts.joined() { take(text, names) }
    guard let first = found.first else { throw CommandFailure(.badData, problem) }
    guard found.count == 1 else { throw CommandFailure(.badData, "\(names) shows several vehicles' codes") }
    return try imported(first, context)
  }

  /// A text that an operator has signed.
  private enum Handed {
    case code(VehicleCode, by: VerificationKey)
    case access(AccessFile)
  }

  private static func imported(_ handed: Handed, _ context: Context) throws -> ImportedVehicle {
    switch handed {
    case .code(let code, let key): try ImportedVehicle(code, signedBy: key)
    case .access(let access): try ImportedVehicle(access, on: EnrolledDevice(context.folders))
    }
  }

  /// Why a text is not a vehicle's code, for people.
  private struct Reason: Error, CustomStringConvertible {
    let description: String
    var hint: String?

    /// - Parameter fault: what is wrong in an access file.
    static func damaged(_ fault: String) -> Reason {
      Reason(
        description: "an access file that cannot be used: \(fault)",
        hint: "it was changed on its way, or is not whole: ask your operator for it again")
    }
  }

  private static func verified(_ text: String, _ now: Int64) -> Result<Handed, Reason> {
    if text.hasPrefix("{"), text.utf8.contains(0x2E) {
      do throws(ProtocolError) { return .success(.access(try AccessFile(parsing: text, now: now))) } catch {
        switch error {
        case .issuedInFuture: return .failure(Reason(description: "\(error)"))
        case .malformed(let part): return .failure(.damaged("\(part)"))
        case .unknownKey, .undecipherable, .badSignature: return .failure(.damaged("\(error)"))
        }
      }
    }
    do {
      let (code, key) = try VehicleCode.verify(text, now: now)
      return .success(.code(code, by: key))
    } catch ProtocolError.issuedInFuture {
      return .failure(Reason(description: "\(ProtocolError.issuedInFuture)"))
    } catch {
      return .failure(Reason(description: other(text) ?? "not a vehicle's code, or a damaged one: \(error)"))
    }
  }

  /// What a text is that brings no vehicle; nil if it is none of the known ones.
  private static func other(_ text: String) -> String? {
    if text.isEmpty { return "there is no text in it" }
    if (try? StepLabel(parsing: text)) != nil { return "this is a step's code, not a vehicle's" }
    if (try? DeviceRequest(verifying: text)) != nil {
      return "this is a device's request; give it to your operator, and import the answer"
    }
    return nil
  }
}
