import Domain
package import SystemIO

/// A radio as written on a command line.
package enum RadioSpec: Hashable, Sendable, CustomStringConvertible {
  /// A Bluetooth adapter of this machine, by its number: `hci0`.
  case hci(UInt16)
  /// The same through bluetoothd, without any privilege: `bluez:hci0`.
  case bluez(UInt16)
  /// A controller at the other end of a stream: `h4:tcp:HOST:PORT`, `h4:unix:PATH`.
  case h4(StreamAddress)
  /// A recording of HCI traffic: `btsnoop:FILE`, or `btsnoop:-` for standard input.
  case btsnoop(String)

  /// All forms, for messages and help.
  package static let forms = "hci0, bluez:hci0, h4:tcp:HOST:PORT, h4:unix:PATH or btsnoop:FILE (- for standard input)"

  package init(_ text: String) throws(MalformedRadioSpec) {
    func malformed(_ reason: String) -> MalformedRadioSpec { MalformedRadioSpec(text: text, reason: reason) }

    if let path = text.after("btsnoop:") {
      guard !path.isEmpty else { throw malformed("the file is missing") }
      self = .btsnoop(path)
    } else if let path = text.after("h4:unix:") {
      // sun_path has 108 bytes with the terminating NUL (unix(7)).
      guard (1...107).contains(path.utf8.count) else { throw malformed("the path must have 1 to 107 bytes") }
      self = .h4(.unix(path: path))
    } else if let endpoint = text.after("h4:tcp:") {
      do throws(HostPort.Flaw) {
        let peer = try HostPort(endpoint[...], usual: nil)
        self = .h4(.tcp(host: peer.host, port: peer.port))
      } catch {
        switch error {
        case .host: throw malformed("the host is missing or malformed")
        case .brackets: throw malformed("an IPv6 address is written in brackets: h4:tcp:[::1]:9000")
        case .portMissing: throw malformed("the port is missing")
        case .port: throw malformed("the port must be a number from 1 to 65535")
        }
      }
    } else if let number = text.after("bluez:hci") ?? text.after("hci") {
      guard let index = UInt16(decimal: number) else { throw malformed("an adapter is hci and its number: hci0") }
      self = text.hasPrefix("bluez:") ? .bluez(index) : .hci(index)
    } else {
      throw malformed("expected \(Self.forms)")
    }
  }

  package var description: String {
    switch self {
    case .hci(let index): "hci\(index)"
    case .bluez(let index): "bluez:hci\(index)"
    case .h4(let address): "h4:\(address)"
    case .btsnoop(let path): "btsnoop:\(path)"
    }
  }

  /// Whether it reports every frame live: bluetoothd reports two frames per second, and no list of services.
  package var hearsEveryFrame: Bool {
    switch self {
    case .hci, .h4: true
    case .bluez, .btsnoop: false
    }
  }

  /// The number of an adapter of this computer; nil for anything else.
  package var adapter: UInt16? {
    switch self {
    case .hci(let number), .bluez(let number): number
    case .h4, .btsnoop: nil
    }
  }

  package var isCapture: Bool { if case .btsnoop = self { true } else { false } }

  /// Whether it ends in a moment where nobody looks: a recording is replayed as fast as it can be read, unless a
  /// program still writes to it through a pipe.
  package var isReplay: Bool {
    if case .btsnoop(let path) = self { path != "-" } else { false }
  }

  /// Opens the radio: when this returns, it listens.
  ///
  /// - Parameters:
  ///   - interruption: ends every wait, also while opening.
  ///   - tell: gets notices for the user that do not end anything: a sentence without a full stop.
  ///   - trace: gets what is heard, byte by byte, in lines; nil if it is not wanted.
  package func open(
    interruption: Interruption? = nil, tell: @escaping (String) -> Void = { _ in }, trace: ((String) -> Void)? = nil
  ) throws(RadioError) -> any Radio {
    let radio = try opened(interruption, tell)
    return trace.map { TracedRadio(radio, named: "\(self)", $0) } ?? radio
  }

  private func opened(
    _ interruption: Interruption?, _ tell: @escaping (String) -> Void
  ) throws(RadioError) -> any Radio {
    switch self {
    case .hci(let index):
      try ScanningRadio(HCISocket(adapter: index, hears: true), interruption, tell: tell)
    case .bluez(let index):
      try BlueZRadio(adapter: index, interruption)
    case .h4(let address):
      try ScanningRadio(H4Stream(connectingTo: address, interruption), interruption, tell: tell)
    case .btsnoop(let path):
      try CaptureRadio(path, interruption)
    }
  }
}

extension String {
  fileprivate func after(_ prefix: String) -> String? {
    hasPrefix(prefix) ? String(dropFirst(prefix.count)) : nil
  }
}

extension UInt16 {
  /// Digits only, without a sign or leading zeros.
  fileprivate init?(decimal text: some StringProtocol) {
    guard text.utf8.allSatisfy({ (0x30...0x39).contains($0) }), text == "0" || !text.hasPrefix("0") else { return nil }
    self.init(text)
  }
}

/// The address of a controller that speaks H4 over a stream.
package enum StreamAddress: Hashable, Sendable, CustomStringConvertible {
  /// A host name or address (IPv6 without its brackets), and a port.
  case tcp(host: String, port: UInt16)
  /// The path of a local socket.
  case unix(path: String)

  package var description: String {
    switch self {
    case .tcp(let host, let port): host.contains(":") ? "tcp:[\(host)]:\(port)" : "tcp:\(host):\(port)"
    case .unix(let path): "unix:\(path)"
    }
  }
}

/// A text that does not name a radio.
package struct MalformedRadioSpec: Error, Equatable, CustomStringConvertible {
  package let text: String
  /// What is wrong with the text, or what was expected.
  package let reason: String

  package init(text: String, reason: String) {
    self.text = text
    self.reason = reason
  }

  package var description: String { "\"\(text)\" is not a radio: \(reason)" }
}
