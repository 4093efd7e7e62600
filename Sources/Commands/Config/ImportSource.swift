import CodeReading
import Domain
import Provisioning
import StepProtocol
import SystemIO
import Terminal

/// Where a vehicle is imported from.
enum ImportSource {
  /// A file that `provision token` made, or the text of a vehicle's code.
  case file(String)
  /// A picture of a vehicle's code, or a camera, as `--qr` takes it.
  case picture(String)

  /// - Parameters:
  ///   - now: seconds of Unix time.
  ///   - patience: how long to look through a camera.
  ///   - progress: where the wait for a camera is shown.
  ///   - interruption: is made for a picture only. A file can be a pipe that nobody writes to, and then a signal has to
  ///     end the process.
  func read(
    now: Int64, _ patience: Duration, _ progress: ProgressLine, _ interruption: () throws -> Interruption
  ) throws -> ImportedVehicle {
    switch self {
    case .file(let path): try Self.read(path, now)
    case .picture(let source): try Self.scan(source, now, patience, progress, interruption())
    }
  }

  private static func read(_ path: String, _ now: Int64) throws -> ImportedVehicle {
    if Files.isFolder(path) { return try ImportedVehicle(reading: VehicleFolder(path).path("vehicle.toml")) }
    let bytes = try Files.read(path, limit: 1 << 16)
    guard !bytes.contains(0) else {
      throw CommandFailure(.badData, "\(path): not a text", hint: "use --qr for a picture")
    }
    let text = String(decoding: bytes, as: UTF8.self)
    // Every vehicle file has an equals sign, and no compact JWS has one.
    if text.contains("=") { return try ImportedVehicle(reading: path) }
    switch verified(text.filter { !$0.isWhitespace }, now) {
    case .success(let signed): return try imported(signed)
    case .failure(let reason): throw CommandFailure(.badData, "\(path): \(reason)")
    }
  }

  /// Reads the only vehicle's code in a picture, or the first one that a camera sees.
  private static func scan(
    _ source: String, _ now: Int64, _ patience: Duration, _ progress: ProgressLine, _ interruption: Interruption
  ) throws -> ImportedVehicle {
    defer { progress.clear() }
    func show(_ left: Duration) {
      progress.show("show the vehicle's code to the camera, \(Int(left.inSeconds.rounded(.up))) s left")
    }
    let source = try CodeSource.open(source)
    let (name, isCamera) = (source.name, source.isCamera)
    var reader = try CodeReader(source, patience: patience, interruption: interruption)
    var found: [SignedCode] = []
    var problem = "there is no code in \(name)"
    do {
      while let bytes = try reader.next(progress: show) {
        switch Self.verified(String(decoding: bytes, as: UTF8.self), now) {
        case .success(let signed): found.append(signed)
        case .failure(let reason): problem = "\(name): \(reason)"
        }
        if isCamera, !found.isEmpty { break }
      }
    } catch CodeReaderError.timedOut {
      problem = "the camera saw no vehicle's code in \(tenths(patience.inSeconds)) s"
    }
    guard let first = found.first else { throw CommandFailure(.badData, problem) }
    guard found.count == 1 else { throw CommandFailure(.badData, "\(name) shows several vehicles' codes") }
    return try imported(first)
  }

  private typealias SignedCode = (code: VehicleCode, operatorKey: VerificationKey)

  private static func imported(_ signed: SignedCode) throws -> ImportedVehicle {
    try ImportedVehicle(signed.code, signedBy: signed.operatorKey)
  }

  /// Why a text is not a vehicle's code, for people.
  private struct Reason: Error, CustomStringConvertible {
    let description: String
  }

  private static func verified(_ text: String, _ now: Int64) -> Result<SignedCode, Reason> {
    do { return .success(try VehicleCode.verify(text, now: now)) } catch ProtocolError.issuedInFuture {
      return .failure(Reason(description: "\(ProtocolError.issuedInFuture)"))
    } catch {
      let isLabel = (try? StepLabel(parsing: text)) != nil
      return .failure(
        Reason(
          description: isLabel
            ? "this is a step's code, not a vehicle's" : "not a vehicle's code, or a damaged one: \(error)")
      )
    }
  }
}
