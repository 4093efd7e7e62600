import Foundation
import Testing

/// SwiftPM lets a file import a module that its target does not name, once it was built. This does not.
@Suite("Structure") struct StructureTests {
  static let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent()

  /// Which of our modules, and which foreign ones, each may import. Arrows run downward only.
  static let allowed: [String: Set<String>] = [
    "StepDomain": [],
    "StrictJSON": [],
    "NDEF": [],
    "NFCMessages": ["StepDomain"],
    "NTAG424": ["Crypto", "CryptoExtras"],
    "Ranging": ["StepDomain", "Glibc"],
    "StepProtocol": ["StepDomain", "StrictJSON", "Crypto", "CryptoExtras", "FoundationEssentials"],
    "SystemIO": ["CLinux", "Glibc"],
    "Bluetooth": ["SystemIO", "StepDomain", "Ranging", "CBluetooth", "Glibc", "CSystemd"],
    "NFCReader": ["SystemIO", "StepDomain", "NDEF", "NFCMessages", "NTAG424", "Glibc"],
    "NFCDevice": ["SystemIO", "NFCMessages", "CNFC", "Glibc"],
    "MQTTClient": ["SystemIO", "CMosquitto", "Glibc", "Synchronization"],
    "QRCode": ["CQREncode", "CZlib", "Glibc"],
    "QRReader": ["SystemIO", "Glibc"],
    "Configuration": ["SystemIO", "StepDomain", "StrictJSON", "StepProtocol", "CTOML", "Glibc"],
    "Provisioning": [
      "SystemIO", "StepDomain", "StrictJSON", "StepProtocol", "Configuration", "COpenSSL", "Glibc",
    ],
    "Terminal": ["StepDomain", "SystemIO", "StrictJSON", "Configuration", "MQTTClient", "ArgumentParser", "Glibc"],
    "StepController": [
      "SystemIO", "StepDomain", "StrictJSON", "Ranging", "StepProtocol", "Bluetooth", "MQTTClient", "Configuration",
      "Glibc", "Synchronization",
    ],
    "QRDecoder": ["SystemIO", "QRReader", "CPNG", "CTurboJPEG", "CZBar", "CZXing", "CVideo", "Glibc"],
    "StepCommands": [
      "SystemIO", "StepDomain", "StrictJSON", "NDEF", "NFCMessages", "Ranging", "StepProtocol", "Bluetooth",
      "NFCReader", "QRCode", "QRReader", "MQTTClient", "Configuration", "Provisioning", "Terminal", "ArgumentParser",
      "Glibc",
    ],
    "stepctl-nfc": ["NFCDevice", "Glibc"],
    "stepctl-qr": ["QRDecoder"],
    "stepctl": ["StepCommands", "Terminal"],
    "stepd": ["StepController", "Bluetooth", "Configuration", "MQTTClient", "Terminal", "ArgumentParser", "Glibc"],
  ]

  static func imports() throws -> [(module: String, file: String, imported: String)] {
    let sources = root.appending(path: "Sources")
    let files = FileManager.default.enumerator(at: sources, includingPropertiesForKeys: nil)!
    var found: [(String, String, String)] = []
    for case let file as URL in files where file.pathExtension == "swift" {
      let path = file.path.dropFirst(sources.path.count + 1)
      let module = String(path.prefix { $0 != "/" })
      for line in try String(contentsOf: file, encoding: .utf8).split(separator: "\n") {
        let words = line.split(separator: " ")
        guard let position = words.firstIndex(of: "import"), position <= 2, position + 1 < words.count,
          words[..<position].allSatisfy({ ["package", "public", "internal", "private", "@testable"].contains($0) })
        else { continue }
        found.append((module, String(path), String(words[position + 1].prefix { $0 != "." })))
      }
    }
    return found
  }

  @Test("every import runs downward, and adapters do not import each other")
  func directions() throws {
    let imports = try Self.imports()
    #expect(imports.count > 50)
    for (module, file, imported) in imports {
      #expect(Self.allowed[module]?.contains(imported) == true, "\(file) imports \(imported)")
    }
  }

  @Test("the pure modules import nothing that could do I/O")
  func pure() {
    for module in ["StepDomain", "StrictJSON", "NDEF", "NFCMessages", "NTAG424", "Ranging", "StepProtocol"] {
      #expect(Self.allowed[module]!.isDisjoint(with: ["SystemIO", "CLinux", "Foundation", "Bluetooth", "MQTTClient"]))
    }
  }

  @Test("each C library has one importer")
  func oneImporter() throws {
    var importers: [String: Set<String>] = [:]
    for (module, _, imported) in try Self.imports() { importers[imported, default: []].insert(module) }
    for (library, owner) in [
      "CBluetooth": "Bluetooth", "CSystemd": "Bluetooth", "CNFC": "NFCDevice", "CMosquitto": "MQTTClient",
      "CTOML": "Configuration", "COpenSSL": "Provisioning", "CLinux": "SystemIO", "CQREncode": "QRCode",
      "CZlib": "QRCode", "CPNG": "QRDecoder", "CTurboJPEG": "QRDecoder", "CZBar": "QRDecoder", "CZXing": "QRDecoder",
      "CVideo": "QRDecoder",
    ] {
      #expect((importers[library] ?? []).isSubset(of: [owner]), "\(library)")
    }
  }
}
