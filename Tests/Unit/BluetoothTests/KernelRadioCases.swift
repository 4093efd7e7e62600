import Bluetooth
import Domain
import Glibc
import Ranging
import Synchronization
import SystemIO
import TestSupport
import Testing

/// What `KernelRadioTests` runs inside of a kernel.
@Suite("inside of a kernel", .enabled(if: Rig.isHere, "runs in a kernel that another test starts"))
struct KernelRadioCases {
  /// What somebody else does while the radio listens: a command of the shell, and what is said of it.
  private var deed: (command: String, reason: String) {
    let words = String(cString: getenv("STEPCTL_DEED")).split(separator: ": ")
    return (String(words[0]), words.count > 1 ? String(words[1]) : "")
  }

  private func hear(_ count: Int, _ radio: any Radio) throws {
    var left = count
    while left > 0 {
      guard case .heard(let advertisement) = try radio.next(until: nil) else { continue }
      if advertisement.iBeacon != nil { left -= 1 }
    }
  }

  /// Listens until that fails.
  private func listen(_ radio: any Radio) throws {
    let end = UnixTime(microseconds: WallClock.microseconds + 60_000_000)
    while case .heard = try radio.next(until: end) {}
  }

  // MARK: - Raw HCI

  @Test func hci() throws {
    let contract = RadioContract { try RadioSpec.hci(0).open(interruption: $0) }
    try contract.checkLive()
    try contract.checkInterruption()
    try contract.checkLive()
  }

  @Test func notPermitted() {
    #expect {
      try RadioSpec.hci(0).open()
    } throws: { error in
      guard case .notPermitted("hci0", _) = error as? RadioError else { return false }
      return true
    }
  }

  @Test func down() {
    #expect(throws: RadioError.adapterDown(radio: "hci0")) { try RadioSpec.hci(0).open() }
  }

  @Test func absent() {
    #expect(throws: RadioError.noAdapter(radio: "hci0")) { try RadioSpec.hci(0).open() }
  }

  @Test func noBluetooth() {
    #expect(throws: RadioError.noBluetooth(radio: "hci0")) { try RadioSpec.hci(0).open() }
  }

  @Test func inUse() throws {
    // The adapter's user channel (HCI_CHANNEL_USER of hci.h), which takes an adapter that is down up.
    let channel = Descriptor(adopting: socket(AF_BLUETOOTH, Int32(SOCK_RAW.rawValue), 1))
    let address: [UInt16] = [UInt16(AF_BLUETOOTH), 0, 1]
    let bound = address.withUnsafeBytes {
      bind(channel.number, $0.bindMemory(to: sockaddr.self).baseAddress, socklen_t($0.count))
    }
    #expect(bound == 0)
    #expect(throws: RadioError.adapterInUse(radio: "hci0")) { try RadioSpec.hci(0).open() }
  }

  @Test func goesDown() throws {
    let radio = try RadioSpec.hci(0).open()
    try hear(5, radio)
    _ = shell("hciconfig hci0 down")
    #expect(throws: RadioError.adapterDown(radio: "hci0")) { try listen(radio) }
  }

  @Test func unplugged() throws {
    let radio = try RadioSpec.hci(0).open()
    try hear(5, radio)
    _ = shell("kill $(pgrep beaconctl)")
    #expect(throws: RadioError.lost(radio: "hci0", reason: "the adapter was removed")) { try listen(radio) }
  }

  @Test func ended() throws {
    let told = Mutex<[String]>([])
    let radio = try RadioSpec.hci(0).open { line in told.withLock { $0.append(line) } }
    try hear(5, radio)
    // What a machine hears that is busy with something else, too.
    let usual = try heardInLastSecond(of: 2, radio)
    #expect(usual > 0)
    for _ in 0..<2 {
      _ = shell("( \(deed.command) ) >/dev/null 2>&1")
      // It is heard as well as before.
      #expect(try heardInLastSecond(of: 8, radio) > usual / 3)
    }
    #expect(told.withLock { $0 } == ["another program ended the scan of hci0; it is started again"])
  }

  /// How many beacons are heard in the last one of so many seconds.
  private func heardInLastSecond(of seconds: Int64, _ radio: any Radio) throws -> Int {
    let end = UnixTime(microseconds: WallClock.microseconds + seconds * 1_000_000)
    var heard = 0
    while case .heard(let advertisement) = try radio.next(until: end) {
      if advertisement.time.microseconds > end.microseconds - 1_000_000, advertisement.iBeacon != nil { heard += 1 }
    }
    return heard
  }

  @Test func silence() throws {
    let told = Mutex<[String]>([])
    let radio = try RadioSpec.hci(0).open { line in told.withLock { $0.append(line) } }
    var heard: Set<Int64> = []
    let end = UnixTime(microseconds: radio.start.microseconds + 14_500_000)
    while case .heard(let advertisement) = try radio.next(until: end) {
      heard.insert((advertisement.time.microseconds - radio.start.microseconds) / 5_000_000)
    }
    #expect(heard == [0, 2], "in the first five seconds, and in the third")
    #expect(told.withLock { $0 } == [], "nobody ended it")
  }

  @Test func bluetoothdStops() throws {
    let radio = try RadioSpec.hci(0).open()
    try hear(5, radio)
    // It turns the adapter off before it goes.
    _ = shell("kill $(pgrep bluetoothd)")
    #expect(throws: RadioError.adapterDown(radio: "hci0")) { try listen(radio) }
  }

  // MARK: - bluetoothd

  @Test func bluez() throws {
    // bluetoothd passes on no reading without an RSSI.
    let contract = RadioContract(minors: [1, 2]) { try RadioSpec.bluez(0).open(interruption: $0) }
    try contract.checkLive()
    try contract.checkInterruption()
    try contract.checkLive()
    let radio = try RadioSpec.bluez(0).open()
    let end = UnixTime(microseconds: radio.start.microseconds + 5_000_000)
    var heard: [UInt16: Int] = [:]
    while case .heard(let advertisement) = try radio.next(until: end) {
      if let minor = advertisement.iBeacon?.minor { heard[minor, default: 0] += 1 }
    }
    #expect(heard[1, default: 0] >= 8 && heard[2, default: 0] >= 8, "two a second of each: \(heard)")
  }

  @Test func forged() throws {
    let radio = try RadioSpec.bluez(0).open()
    let beacon = "2 21 95 60 28 14 122 11 79 87 154 85 31 15 108 27 42 144 0 1 0 9 197"
    // Anyone may send a signal to anyone: here to every name that the radio may have.
    let (status, output) = shell(
      """
      for number in $(seq 0 30); do busctl --system --destination=:1.$number emit -- \
        /org/bluez/hci0/dev_C0_00_00_00_00_09 org.freedesktop.DBus.Properties PropertiesChanged 'sa{sv}as' \
        org.bluez.Device1 2 RSSI n -40 ManufacturerData 'a{qv}' 1 76 ay 23 \(beacon) 0; done 2>&1
      """)
    #expect(status == 0, "\(output)")
    let end = UnixTime(microseconds: WallClock.microseconds + 5_000_000)
    var minors: Set<UInt16> = []
    while case .heard(let advertisement) = try radio.next(until: end) {
      if let beacon = advertisement.iBeacon { minors.insert(beacon.minor) }
    }
    #expect(minors == [1, 2])
  }

  private func opening(_ error: RadioError) {
    #expect(throws: error) { try RadioSpec.bluez(0).open() }
  }

  @Test func noBus() { opening(.noSystemBus(radio: "bluez:hci0", reason: "No such file or directory")) }
  @Test func noDaemon() { opening(.noBluetoothDaemon(radio: "bluez:hci0")) }
  @Test func daemonWithoutAdapter() { opening(.noAdapter(radio: "bluez:hci0")) }
  @Test func poweredOff() { opening(.poweredOff(radio: "bluez:hci0")) }
  @Test func notAuthorized() { opening(.notAuthorized(radio: "bluez:hci0")) }

  @Test func lost() throws {
    let radio = try RadioSpec.bluez(0).open()
    try hear(3, radio)
    _ = shell(deed.command)
    #expect(throws: RadioError.lost(radio: "bluez:hci0", reason: deed.reason)) { try listen(radio) }
  }

  @Test func isPoweredOff() throws {
    let radio = try RadioSpec.bluez(0).open()
    try hear(3, radio)
    _ = shell("bluetoothctl power off")
    #expect(throws: RadioError.poweredOff(radio: "bluez:hci0")) { try listen(radio) }
  }
}
