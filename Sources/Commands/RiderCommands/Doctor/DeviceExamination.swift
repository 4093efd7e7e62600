import CodeReading
import CommandParts
import Domain
import NFC
import SystemIO
import UserSettings

/// Checks the devices that read tags and codes.
enum DeviceExamination {
  /// The reader that the settings name. Without a name libnfc searches for any reader, and the search takes time.
  static func reader(_ settings: Settings, _ interruption: Interruption) throws -> Examination {
    var part = Examination("reader")
    examineHelper("stepctl-nfc", &part)
    guard settings.nfc.value != nil else {
      part.find("reader", .good, "no reader is named; tags need one (--nfc)")
      return part
    }
    do {
      let reader = try NFCReader(settings.reader(), interruption: interruption)
      defer { reader.close() }
      part.find("reader", .good, "\(settings.nfc.value ?? "") answers (\(settings.nfc.origin))")
    } catch let failure as any Failure {
      if failure.isInterruption { throw failure }
      let isForbidden = failure.exitStatus == .noPermission
      part.find("reader", failure, isForbidden ? "sudo usermod -aG dialout \"$USER\"" : nil)
    }
    return part
  }

  static func cameras(_ settings: Settings, _ interruption: Interruption) throws -> Examination {
    var part = Examination("camera")
    examineHelper("stepctl-qr", &part)
    let devices = ((try? Files.names(in: "/dev")) ?? []).filter { $0.hasPrefix("video") }.sorted()
    if devices.isEmpty { part.find("camera", .good, "no camera is connected; --qr reads pictures too") }
    for device in devices {
      do {
        _ = try CodeSource.open("/dev/\(device)")
        part.find("camera", .good, "/dev/\(device) can be opened")
      } catch {
        let isForbidden = error.exitStatus == .noPermission
        part.find("camera", error, isForbidden ? "sudo usermod -aG video \"$USER\"" : nil)
      }
    }
    return part
  }

  /// The program that contains the libraries.
  private static func examineHelper(_ name: String, _ part: inout Examination) {
    do { _ = try ChildProcess.program(name) } catch { part.find("program", error) }
  }
}
