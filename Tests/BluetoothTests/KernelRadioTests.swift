import Bluetooth
import Glibc
import Ranging
import Testing

/// Radios of a real kernel, whose controller is a virtual one. There is no Bluetooth in most machines that run tests,
/// so each case starts a kernel of its own and runs a test of `KernelRadioCases` in it.
@Suite(
  "adapters of a real kernel", .serialized,
  .enabled(if: getenv("STEPCTL_RIG") != nil, "STEPCTL_RIG names no folder with umlrun.sh"))
struct KernelRadioTests {
  @Test(
    "are listened to, and stop",
    arguments: [
      ("", "hears"), ("--ctl --bt4", "hears"), ("--noup", "down"), ("--scn none", "absent"),
      ("--as nobody", "notPermitted"),
    ])
  func inKernel(options: String, name: String) {
    let rig = String(cString: getenv("STEPCTL_RIG"))
    let (status, output) = shell(
      "'\(rig)/umlrun.sh' \(options) -- env STEPCTL_IN_RIG=1 '\(CommandLine.arguments[0])' "
        + "--testing-library swift-testing --filter 'KernelRadioCases.\(name)' 2>&1")
    #expect(status == 0, "\(output)")
    #expect(output.contains("Test run with 1 test"), "\(output)")
  }
}

/// What `KernelRadioTests` runs inside of a kernel.
@Suite("inside of a kernel", .enabled(if: getenv("STEPCTL_IN_RIG") != nil, "runs in a kernel that another test starts"))
struct KernelRadioCases {
  @Test func hears() throws {
    for _ in 0..<2 {
      let radio = try RadioSpec.hci(0).open()
      var beacons = 0
      while beacons < 20 {
        guard case .heard(let advertisement) = try radio.next(until: nil) else { continue }
        if let beacon = advertisement.iBeacon {
          #expect(beacon.measuredPower == -59)
          beacons += 1
        }
      }
    }
  }

  @Test func down() {
    #expect(throws: RadioError.adapterDown(radio: "hci0")) { try RadioSpec.hci(0).open() }
  }

  @Test func absent() {
    #expect(throws: RadioError.noAdapter(radio: "hci0")) { try RadioSpec.hci(0).open() }
  }

  @Test func notPermitted() {
    #expect {
      try RadioSpec.hci(0).open()
    } throws: { error in
      guard case .notPermitted("hci0", _) = error as? RadioError else { return false }
      return true
    }
  }
}
