import Bluetooth
import Dispatch
import Glibc
import TestSupport
import Testing

/// Radios of a real kernel, whose controller is a virtual one. There is no Bluetooth in most machines that run tests,
/// so each case starts a kernel of its own and runs a test of `KernelRadioCases` in it.
@Suite("adapters of a real kernel", .enabled(if: Rig.hasKernel, "\(Rig.missing)"))
struct KernelRadioTests {
  struct Case: CustomTestStringConvertible, Sendable {
    let testDescription: String
    /// What `KernelRadioCases` has to say to it.
    let test: String
    /// Of `run.sh`.
    var options = ""
    /// What runs the test, in the kernel.
    var prefix = ""
    var scenario: String

    /// Who has no adapter cannot stop its scan.
    var losesAdapter: Bool { ["goesDown", "unplugged"].contains(test) || test.contains("adapter was removed") }

    init(
      _ description: String, _ test: String, _ options: String = "", by prefix: String = "",
      scenario: String = RadioContract.scenario()
    ) {
      testDescription = description
      self.test = test
      self.options = options
      self.prefix = prefix
      self.scenario = scenario
    }
  }

  private static let bus = "--pre 'mkdir -p /run/dbus; dbus-daemon --system --fork --nopidfile'"
  private static let capability =
    "setpriv --reuid=nobody --regid=nogroup --clear-groups --inh-caps=+net_raw --ambient-caps=+net_raw"
  private static let denial = """
    --pre "sed -i '/context=.default/,/policy>/s/allow/deny/' /etc/dbus-1/system.d/bluetooth.conf; \
    dbus-send --system --print-reply --dest=org.freedesktop.DBus / org.freedesktop.DBus.ReloadConfig; sleep 0.5"
    """
  /// As a service manager does it: while the old one has its name on the bus, a new one ends at once.
  private static let restart = """
    kill $(pgrep bluetoothd); while pgrep --runstates DRS bluetoothd; do sleep 0.1; done; \
    /usr/libexec/bluetooth/bluetoothd -n &
    """

  static let cases = [
    Case("a Bluetooth 5 controller", "hci"),
    Case("a Bluetooth 4.2 controller", "hci", "--ctl --bt4"),
    Case("several reports in an event", "hci", "--ctl '--bundle 3'"),
    Case("several legacy reports in an event", "hci", "--ctl '--bt4 --bundle 3'"),
    Case("beacons that tell their battery", "hci", scenario: RadioContract.scenario(hasBattery: true)),
    Case("nobody with the capability", "hci", by: capability),
    Case("nobody", "notPermitted", "--as nobody"),
    Case("an adapter that is down", "down", "--noup"),
    Case("no adapter", "absent", "--scn none"),
    Case("no Bluetooth in the network namespace", "noBluetooth", by: "unshare --net"),
    Case("a program that has the adapter for itself", "inUse", "--noup"),
    Case("a predecessor that was killed", "hci", by: "sh -c 'hcitool cmd 8 42 1 0 0 0 0 0 >/dev/null; exec \"$@\"' sh"),
    Case("an adapter that goes down", "goesDown"),
    Case("an adapter that is unplugged", "unplugged"),
    Case("an adapter that is reset", "ended by hciconfig hci0 reset"),
    Case("another program that ends the scan", "ended by hcitool cmd 8 42 0 0 0 0 0 0"),
    Case("another program that filters duplicates", "ended by hcitool cmd 8 42 1 1 0 0 0 0"),
    Case("bluetoothd that runs", "hci", "--dbus"),
    Case("bluetoothd that starts", "ended by /usr/libexec/bluetooth/bluetoothd -n &", bus),
    Case("bluetoothd that scans for another", "ended by bluetoothctl --timeout 2 scan on &", "--dbus"),
    Case("bluetoothd that is restarted", "ended by \(restart)", "--dbus"),
    Case("bluetoothd that stops", "bluetoothdStops", "--dbus"),

    // Of what is on the air for a second after the scan has begun, there is more when it has begun again.
    Case("a silence", "silence", scenario: RadioContract.scenario(seconds: 1)),

    Case("bluetoothd, asked by root", "bluez", "--dbus"),
    Case("somebody who speaks as bluetoothd", "forged", "--dbus"),
    Case(
      "bluetoothd, beside beacons that tell their battery", "bluez", "--dbus",
      scenario: RadioContract.scenario(hasBattery: true)),
    Case("bluetoothd, asked by nobody", "bluez", "--dbus --as nobody"),
    Case("bluetoothd, asked by nobody, of a 4.2 controller", "bluez", "--dbus --as nobody --ctl --bt4"),
    Case("no system bus", "noBus"),
    Case("no bluetoothd", "noDaemon", bus),
    Case("bluetoothd without an adapter", "daemonWithoutAdapter", "--scn none --dbus"),
    Case("bluetoothd that keeps it off", "poweredOff", "--dbus --pre 'bluetoothctl power off'"),
    Case("a bus that lets nobody speak to bluetoothd", "notAuthorized", "--dbus --as nobody \(denial)"),
    Case("bluetoothd that is asked and ends", "lost by kill $(pgrep bluetoothd): bluetoothd stopped", "--dbus"),
    Case("bluetoothd whose adapter is unplugged", "lost by kill $(pgrep beaconctl): the adapter was removed", "--dbus"),
    Case("bluetoothd that is asked and is told to power off", "isPoweredOff", "--dbus"),
  ]

  /// So many kernels run side by side. They wait for most of the time, on threads that no other test needs.
  private static let lanes = (0..<2).map { DispatchQueue(label: "kernel \($0)") }

  @Test("are listened to, or said to be unusable, and are left not scanning", arguments: zip(cases, 0..<cases.count))
  func inKernel(_ case: Case, number: Int) async throws {
    let lane = Self.lanes[number % Self.lanes.count]
    let ended = try await withCheckedThrowingContinuation { continuation in
      lane.async { continuation.resume(with: Result { try `case`.run() }) }
    }
    #expect(ended.status == 0, "\(ended.output)")
    #expect(ended.output.contains("Test run with 1 test"), "\(ended.output)")
    #expect(ended.scans.isEmpty || ended.scans.contains("params 00") || `case`.losesAdapter, "\(ended.scans)")
  }
}

extension KernelRadioTests.Case {
  /// How the test ended in its kernel, and the last order to scan, or not to, that the controller got.
  func run() throws -> (status: Int32, output: String, scans: String) {
    let folder = try TemporaryFolder()
    let scenarioOption = options.contains("--scn") ? "" : "--scn '\(folder.path)/scenario'"
    let words = test.split(separator: " ", maxSplits: 2).map(String.init)
    let (status, output) = shell(
      """
      cat >'\(folder.path)/scenario' <<'EOF'
      \(scenario)EOF
      '\(Rig.path)/run.sh' --virtual-time --timeout 300 --keep '\(folder.path)/kept' \(scenarioOption) \(options) -- \(prefix) \
        env STEPCTL_IN_RIG=1 STEPCTL_DEED='\(words.last ?? "")' '\(CommandLine.arguments[0])' \
        --testing-library swift-testing --filter 'KernelRadioCases.\(words[0])\\(' 2>&1
      """)
    let (_, scans) = shell(
      """
      grep -E 'cmd (2042|200c) params' '\(folder.path)/kept/ctl0.log' 2>/dev/null | tail -n 1
      rm -rf '\(folder.path)/kept'
      """)
    return (status, output, scans)
  }
}
