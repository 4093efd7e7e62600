import Bluetooth
import CommandParts
import Domain
import Ranging
import Rider
import SystemIO

/// Checks a radio from the kernel upward until it finds a fault, and then listens with it.
struct RadioExamination {
  /// How long it listens: thirty frames of a nearby beacon.
  private static let seconds = 3.0

  private let radio: RadioSpec
  private let interruption: Interruption
  /// Receives what the radio hears; nil if that is not wanted.
  private let trace: ((String) -> Void)?

  init(_ radio: RadioSpec, _ interruption: Interruption, trace: ((String) -> Void)?) {
    self.radio = radio
    self.interruption = interruption
    self.trace = trace
  }

  /// - Throws: only `RadioError.interrupted`.
  func report() throws -> RadioReport {
    var report = RadioReport(radio: radio)
    do throws(RadioError) {
      switch radio {
      case .hci(let number):
        try examineAdapter(number, &report)
        try examineController(&report)
        examineOthers(&report)
      case .bluez(let number):
        try examineAdapter(number, &report)
      case .h4, .btsnoop:
        break
      }
      try listen(&report)
    } catch .interrupted {
      throw RadioError.interrupted
    } catch {
      report.failure = error
      report.examination.exitStatus = error.exitStatus
      report.examination.findings.append(finding(of: error))
      if case .adapterInUse = error { examineOthers(&report) }
    }
    return report
  }

  // MARK: - Adapter and controller

  private func examineAdapter(_ number: UInt16, _ report: inout RadioReport) throws(RadioError) {
    // Opening a missing adapter gives a clearer error than this check could.
    guard let adapter = Adapter.all().first(where: { $0.number == number }) else { return }
    let name = "hci\(number)"
    if let block = adapter.block {
      report.examination.findings.append(
        .init(
          subject: "rfkill", state: .broken,
          text: block == .hard ? "a switch of the machine blocks \(name)" : "\(name) is blocked, as in airplane mode",
          remedy: block == .hard ? nil : "sudo rfkill unblock bluetooth"))
    }
    guard adapter.isUp else { throw .adapterDown(radio: name) }
    report.examination.findings.append(.init(subject: "adapter", state: .good, text: "\(adapter.address), up"))
  }

  private func examineController(_ report: inout RadioReport) throws(RadioError) {
    guard let abilities = try radio.abilities(interruption: interruption) else { return }
    report.examination.findings.append(
      .init(subject: "permission", state: .good, text: "raw HCI sockets (CAP_NET_RAW)"))
    let sets = abilities.advertisingSets
    let commands = abilities.isExtended ? "Bluetooth 5's commands" : "Bluetooth 4's commands"
    report.examination.findings.append(
      .init(
        subject: "controller", state: .good,
        text: "Low Energy, \(commands); it can send \(sets) beacon\(sets == 1 ? "" : "s") at a time"))
  }

  private func examineOthers(_ report: inout RadioReport) {
    let users = BluetoothUser.others().filter { $0.name != Self.daemon }
    let names = users.map { "\($0.name) (\($0.process))" }.joined(separator: ", ")
    if !users.isEmpty {
      report.examination.findings.append(
        .init(subject: "others", state: .warning, text: "Bluetooth is also used by \(names)"))
    }
    if BluetoothUser.isRunning(Self.daemon) {
      report.examination.findings.append(
        .init(subject: Self.daemon, state: .warning, text: "is running; if it ends a scan, stepctl begins it again"))
    } else if users.isEmpty {
      report.examination.findings.append(
        .init(subject: "others", state: .good, text: "no other program uses Bluetooth"))
    }
  }

  private static let daemon = "bluetoothd"

  // MARK: - Listening

  private func listen(_ report: inout RadioReport) throws(RadioError) {
    let notices = Notices()
    let radio = try radio.open(interruption: interruption, tell: { notices.texts.append($0) }, trace: trace)
    defer { radio.close() }
    var table = ScanTable()
    let end = UnixTime(microseconds: radio.start.microseconds + Int64(Self.seconds * 1e6))
    listening: while true {
      switch try radio.next(until: end) {
      case .heard(let advertisement):
        table.hear(advertisement, at: advertisement.time.seconds(since: radio.start))
      case .deadline, .ended: break listening
      }
    }
    let rows = table.rows(at: Self.seconds)
    let heard = RadioReport.Heard(
      seconds: Self.seconds, advertisements: table.frames + table.others, frames: table.frames, beacons: rows.count,
      readingsPerSecond: Double(rows.map(\.history.readings).max() ?? 0) / Self.seconds)
    report.heard = heard
    report.examination.findings.append(finding(of: heard))
    if case .bluez = self.radio, heard.frames > 0, heard.readingsPerSecond < RangingModel.leastRate {
      report.examination.findings.append(
        .init(
          subject: Self.daemon, state: .warning,
          text: "passes on few frames while another program scans: end that program"))
    }
    report.examination.findings += notices.texts.map { .init(subject: "notice", state: .warning, text: $0) }
  }

  /// What the radio reports about itself while it is open.
  private final class Notices {
    var texts: [String] = []
  }

  private func finding(of heard: RadioReport.Heard) -> Examination.Finding {
    func found(_ state: Examination.State, _ text: String) -> Examination.Finding {
      .init(subject: "listening", state: state, text: text)
    }
    if heard.advertisements == 0 { return found(.warning, "nothing heard in \(Int(heard.seconds)) s") }
    if heard.beacons == 0 { return found(.warning, "\(heard.advertisements) heard, none from a beacon") }
    let beacons = "\(heard.beacons) beacon\(heard.beacons == 1 ? "" : "s")"
    let readings = "up to \(tenths(heard.readingsPerSecond)) readings/s"
    let text = "\(heard.advertisements) heard, \(heard.frames) from \(beacons), \(readings)"
    return heard.readingsPerSecond < RangingModel.leastRate
      ? found(.warning, "\(text): too few to locate you") : found(.good, text)
  }

  // MARK: - Faults

  private func finding(of error: RadioError) -> Examination.Finding {
    func wrong(_ subject: String, _ text: String? = nil, _ remedy: String?) -> Examination.Finding {
      .init(subject: subject, state: .broken, text: text ?? error.description, remedy: remedy)
    }
    return switch error {
    case .noBluetooth:
      wrong("kernel", "this kernel has no Bluetooth, or this container does not see it", "sudo modprobe btusb")
    case .noAdapter(let radio):
      wrong("adapter", "there is no \(radio)", "sudo dmesg | grep -i bluetooth")
    case .adapterDown(let radio):
      wrong(
        "adapter", "\(radio) is down",
        BluetoothUser.isRunning(Self.daemon) ? "bluetoothctl power on" : "sudo hciconfig \(radio) up")
    case .poweredOff(let radio):
      wrong("adapter", "\(radio) is powered off", "bluetoothctl power on")
    case .notPermitted(_, let program):
      wrong("permission", "raw HCI sockets need CAP_NET_RAW", shellCommand("sudo", "setcap", "cap_net_raw+ep", program))
    case .adapterInUse:
      wrong("adapter", "another program uses it alone, as a virtual machine does", nil)
    case .notAuthorized:
      wrong(Self.daemon, "the system bus does not let you talk to it", "sudo usermod -aG bluetooth $USER")
    case .noSystemBus:
      wrong(Self.daemon, "there is no D-Bus system bus to reach it through", "sudo systemctl start dbus")
    case .noBluetoothDaemon:
      wrong(Self.daemon, "is not running", "sudo systemctl start bluetooth")
    case .refused(let radio, _, _), .noAnswer(let radio, _):
      wrong("controller", nil, radio.hasPrefix("hci") ? "sudo hciconfig \(radio) reset" : nil)
    default:
      wrong("radio", nil, nil)
    }
  }
}
