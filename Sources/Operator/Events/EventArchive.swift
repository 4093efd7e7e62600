package import Domain
import Encoding
import FileFormats
import Glibc
package import StepProtocol
import SystemIO

/// The events of a vehicle that its operator has, in a file: one event per line, as the controller has signed it. The
/// file only grows. Anyone who has the file can check it without the vehicle.
package struct EventArchive: Sendable {
  /// The number of bytes to read at once: more than one line.
  private static let chunk = 1 << 16
  /// More bytes than are written at once. Of these a power cut may leave any part, and zeros for the others.
  private static let longestWrite = 1 << 18

  package let path: String

  /// Whether there are stored events of the vehicle.
  package var exists: Bool { Files.exists(path) }

  /// Reads the lines one after the other, however many there are. Skips what a crash has left of the last write.
  ///
  /// - Parameter key: the controller's, if signatures are to be checked.
  /// - Throws: `EventError.damaged`, and what `body` throws.
  package func read(verifiedBy key: VerificationKey? = nil, _ body: (SignedEvent) throws -> Void) throws {
    guard exists else { return }
    let file = try Descriptor.openRegular(path)
    var left = try Self.size(of: file, path)
    var chunk = [UInt8](repeating: 0, count: Self.chunk)
    // The bytes of an incomplete line.
    var rest: [UInt8] = []
    var number = 0
    while true {
      let count = try chunk.withUnsafeMutableBytes { try file.read(into: $0, path) }
      if count == 0 { return }
      rest += chunk[..<count]
      left -= count
      var begin = 0
      while let end = rest[begin...].firstIndex(of: 0x0A) {
        number += 1
        if rest[begin..<end].contains(0), rest.count - begin + left <= Self.longestWrite { return }
        try body(line(Array(rest[begin..<end]), number, verifiedBy: key))
        begin = end + 1
      }
      rest.removeFirst(begin)
      if rest.contains(0), rest.count + left <= Self.longestWrite { return }
      guard rest.count < Self.chunk else {
        throw EventError.damaged(path, line: number + 1, .malformed("larger than \(Self.chunk) bytes"))
      }
    }
  }

  /// - Parameter number: for errors.
  private func line(
    _ text: [UInt8], _ number: Int?, verifiedBy key: VerificationKey? = nil
  ) throws(EventError) -> SignedEvent {
    do throws(ProtocolError) {
      let event = if let key { try VehicleEvent(verifying: text, by: key) } else { try VehicleEvent(unverified: text) }
      return SignedEvent(event, text)
    } catch {
      throw .damaged(path, line: number, error)
    }
  }

  /// Reads only the last line, for the acknowledgement.
  package func last() throws -> SignedEvent? {
    guard exists else { return nil }
    let (bytes, _) = try Self.tail(of: .openRegular(path), path)
    guard let last = bytes.prefix(Self.whole(bytes)).lastIndex(of: 0x0A) else { return nil }
    let begin = bytes[..<last].lastIndex(of: 0x0A).map { $0 + 1 } ?? 0
    return try line(Array(bytes[begin..<last]), nil)
  }

  /// - Returns: more than what was written last, and the size of the file.
  private static func tail(
    of file: borrowing Descriptor, _ path: String
  ) throws(SystemError) -> (bytes: [UInt8], size: Int) {
    let number = file.number
    let size = try size(of: file, path)
    _ = try check("read", path) { lseek(number, off_t(max(0, size - longestWrite)), SEEK_SET) }
    return (try Files.readAll(file, path), size)
  }

  private static func size(of file: borrowing Descriptor, _ path: String) throws(SystemError) -> Int {
    let number = file.number
    var status = stat()
    _ = try check("read", path) { fstat(number, &status) }
    return Int(status.st_size)
  }

  /// The number of bytes in complete lines. A zero byte marks where a write did not reach the medium; that byte and
  /// everything after it do not count.
  private static func whole(_ bytes: [UInt8]) -> Int {
    let end = bytes.firstIndex(of: 0) ?? bytes.count
    return bytes[..<end].lastIndex(of: 0x0A).map { $0 + 1 } ?? 0
  }

  /// Opens the file in order to add lines. Only one program at a time can do this.
  ///
  /// - Parameter patience: how long to wait for another program.
  /// - Throws: `EventError.inUse`.
  func writer(patience: Duration = .zero) throws -> Writer { try Writer(path, patience) }

  final class Writer {
    private let path: String
    private let file: Descriptor

    fileprivate init(_ path: String, _ patience: Duration) throws {
      self.path = path
      try Files.createFolderForOwner(Files.parent(of: path), mode: 0o700)
      file = try Files.openToAppendForOwner(path, mode: 0o600)
      let end = Instant.now + patience
      while !file.lock() {
        guard Instant.now < end else { throw EventError.inUse(path) }
        usleep(10_000)
      }
      let (bytes, size) = try EventArchive.tail(of: file, path)
      let torn = bytes.count - EventArchive.whole(bytes)
      let number = file.number
      if torn > 0 { _ = try check("write", path) { ftruncate(number, off_t(size - torn)) } }
    }

    /// Returns when the lines are on the medium: only then may they be acknowledged.
    func append(_ lines: [SignedEvent]) throws(SystemError) {
      guard !lines.isEmpty else { return }
      try file.write(lines.flatMap { $0.text + [0x0A] }, path)
      try file.synchronize(path)
    }
  }
}

/// Why a vehicle's events are not available.
package enum EventError: Failure, Equatable {
  case damaged(String, line: Int?, ProtocolError)
  case inUse(String)
  /// These vehicles have not answered the notice that asks for events.
  case silent([String])
  /// The stored events have faults.
  case broken(Int)
  /// The operator has no vehicle of that name.
  case unknownVehicle(String)

  package var exitStatus: ExitStatus {
    switch self {
    case .damaged, .broken: .badData
    case .inUse, .silent: .unavailable
    case .unknownVehicle: .usage
    }
  }

  package var description: String {
    switch self {
    case .damaged(let path, let line?, let error): "\(path), line \(line): \(error)"
    case .damaged(let path, nil, let error): "\(path), last line: \(error)"
    case .inUse(let path): "\(path) is in use by another program, such as `stepctl operator log --follow`"
    case .silent(let names): "no answer from \(names.joined(separator: ", "))"
    case .broken(let count): "\(count) \(count == 1 ? "place" : "places") where events are missing or told twice"
    case .unknownVehicle(let name): "\(name): not a vehicle of this operator"
    }
  }

  package var hint: String? {
    switch self {
    case .damaged: "somebody has changed the file: take it from a backup, or move it away"
    case .inUse: nil
    case .silent:
      "is the vehicle on? `stepctl provision update DIR` writes its broker's access list again"
    case .broken: nil
    case .unknownVehicle: "`stepctl operator vehicles DIR` lists them"
    }
  }
}

extension OperatorPlace {
  /// The key to which events are encrypted. Creates it for the first notice, and after a change of the keys.
  func eventKey() throws -> DecryptionKey {
    let file = path(VehiclePaths.eventKey)
    if !Files.exists(file) {
      // Only a complete key gets the name: a damaged key would prevent every notice. If two are made at once, the first
      // counts.
      let new = "\(file).\(getpid()).new"
      try Files.replaceForOwner(new, with: (DecryptionKey().jwk.text + "\n").utf8, mode: 0o600)
      defer { unlink(new) }
      guard link(new, file) == 0 || errno == EEXIST else { throw SystemError("create", file) }
      try StagingFolder.synchronize(Files.parent(of: file))
    }
    return try KeyFile.decryptionKey(file)
  }

  /// The present key, and during a key change also the previous one: a vehicle that does not know the new key yet
  /// encrypts to the old one.
  func eventKeys() throws -> [DecryptionKey] {
    let previous = path(VehiclePaths.previousEventKey)
    return try [eventKey()] + (Files.exists(previous) ? [KeyFile.decryptionKey(previous)] : [])
  }

  /// Makes a new key, and keeps the previous one. After a crash it is called again, and makes no second key.
  func rotateEventKey() throws {
    let keys = try eventKeys().map(\.encryptionKey)
    guard keys.count < 2 || keys[0] == keys[1] else { return }
    let present = try KeyFile.decryptionKey(path(VehiclePaths.eventKey))
    try Files.replaceForOwner(path(VehiclePaths.previousEventKey), with: (present.jwk.text + "\n").utf8, mode: 0o600)
    try Files.replaceForOwner(path(VehiclePaths.eventKey), with: (DecryptionKey().jwk.text + "\n").utf8, mode: 0o600)
  }

  /// Removes the previous key. From here on nobody can read what was encrypted to it.
  func retireEventKey() throws {
    let file = path(VehiclePaths.previousEventKey)
    if Files.exists(file) { _ = try check("remove", file) { unlink(file) } }
  }

  package func archive(of vehicle: UUID) -> EventArchive {
    EventArchive(path: "\(path(VehiclePaths.events))/\(vehicle).jwt")
  }

  /// The vehicles, or the one of that name, UUID, folder or file. A folder's own name comes before a vehicle's, and an
  /// exact name before one that is only meant.
  package func vehicles(named name: String?) throws -> [VehicleFolder] {
    let all = try vehicles()
    guard let name else { return all }
    let file = Files.isFolder(name) ? "\(name)/vehicle.toml" : name
    let uuid = UUID(name) ?? (try? VehicleFile(reading: file))?.vehicle.uuid
    let known = try all.map { (folder: $0, vehicle: try $0.readVehicleFile().vehicle) }
    let ways: [(VehicleFolder, Vehicle) -> Bool] = [
      { folder, vehicle in folder.name == name }, { folder, vehicle in vehicle.name == name },
      { folder, vehicle in vehicle.uuid == uuid }, { folder, vehicle in Vehicle.isMeant(vehicle.name, by: name) },
    ]
    for isNamed in ways {
      let found = known.filter { isNamed($0.folder, $0.vehicle) }
      if !found.isEmpty { return found.map(\.folder) }
    }
    throw EventError.unknownVehicle(name)
  }
}

extension VehicleFolder {
  package func vehicle() throws -> Vehicle { try readVehicleFile().vehicle }

  /// The key that verifies the controller's statements and events.
  package func controllerKey() throws -> VerificationKey {
    let file = try readVehicleFile()
    return try file.present(file.controller, "[controller]").signing
  }
}
