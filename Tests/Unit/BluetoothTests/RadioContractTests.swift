import Bluetooth
import Glibc
import SystemIO
import TestSupport
import Testing

@Suite("every radio keeps the contract")
struct RadioContractTests {
  private let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  @Test("btsnoop")
  func capture() throws {
    var capture = Capture()
    capture.add(Packet.command, at: 1_000_000, flags: 2)
    capture.add(Packet.contract(extended: false), at: 2_000_000)
    capture.add(Packet.answer, at: 3_000_000)
    let path = try folder.capture(capture.bytes)
    try RadioContract { try RadioSpec.btsnoop(path).open(interruption: $0) }.checkCapture()
  }

  @Test("a btsnoop pipe is interrupted")
  func pipe() throws {
    let path = "\(folder.path)/pipe"
    #expect(mkfifo(path, 0o600) == 0)
    let writer = try Descriptor.open(path, O_RDWR)
    var capture = Capture()
    capture.add(Packet.contract(extended: false), at: 2_000_000)
    try writer.write(capture.bytes)
    try RadioContract { try RadioSpec.btsnoop(path).open(interruption: $0) }.checkInterruption()
  }

  @Test("H4, a controller of our own", arguments: [false, true])
  func stream(extended: Bool) throws {
    for check in [{ try $0.checkLive() }, { try $0.checkInterruption() }] as [(RadioContract) throws -> Void] {
      let folder = try TemporaryFolder()
      let controller = try VirtualController(
        folder, .init(extended: extended, sends: [Packet.contract(extended: extended)]))
      let thread = Thread { controller.serve() }
      let spec = RadioSpec.h4(.unix(path: controller.path))
      try check(RadioContract { try spec.open(interruption: $0) })
      thread.join()
    }
  }

  @Test("H4, a controller of somebody else, also beside beacons that tell their battery", arguments: [false, true])
  func beaconctl(hasBattery: Bool) throws {
    for options in ["", "--bt4", "--bundle 3", "--bt4 --bundle 3"] {
      let socket = "\(folder.path)/socket"
      try Descriptor.open("\(folder.path)/scenario", O_WRONLY | O_CREAT | O_TRUNC, mode: 0o600)
        .write(Array(RadioContract.scenario(hasBattery: hasBattery).utf8))
      let (status, output) = shell(
        """
        set -e; cd '\(folder.path)'; test -x beaconctl || gcc -w -o beaconctl '\(Rig.path)/beaconctl.c' -lm
        rm -f ready; ./beaconctl unix:\(socket) scenario \(options) --ready ready >/dev/null 2>&1 & echo $! >process
        for try in $(seq 1500); do test -s ready && exit; sleep 0.02; done; exit 1
        """)
      #expect(status == 0, "\(output)")
      defer { _ = shell("cd '\(folder.path)' && kill $(cat process)") }
      let contract = RadioContract { try RadioSpec.h4(.unix(path: socket)).open(interruption: $0) }
      // It takes one host after the other.
      try contract.checkLive()
      try contract.checkInterruption()
      try contract.checkLive()
    }
  }
}
