import Bluetooth
import Domain
import Glibc
import Ranging
import Rider
import SystemIO
import TestSupport
import Testing

/// What is decided from captures of a vehicle's beacons, by the addresses that send.
@Suite("A search by beacons") struct BeaconSearchTests {
  private let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  /// The AD structures of a beacon, without Flags.
  private func data(of major: UInt16, vehicle: UUID = World.vehicle.uuid) -> [UInt8] {
    Array(IBeacon(uuid: vehicle, major: major, minor: 1, measuredPower: -59).advertisingData.dropFirst(3))
  }

  private func radio(_ heard: [Advertisement]) throws -> RadioSpec {
    let path = "\(folder.path)/capture"
    let records = heard.sorted { $0.time < $1.time }.map { BTSnoopEncoder.record(of: $0) }
    try Descriptor.open(path, O_WRONLY | O_CREAT | O_TRUNC, mode: 0o600).write(
      BTSnoopEncoder.fileHeader + records.joined())
    return .btsnoop(path)
  }

  private func decide(_ heard: [Advertisement]) throws -> [Location] {
    var decisions: [Location] = []
    let search = BeaconSearch(World.vehicle, radio: try radio(heard), limit: nil)
    func take(_ location: Location, delay: Double) -> Bool {
      decisions.append(location)
      return true
    }
    try search.follow(.manual(), tell: { Issue.record("\($0)") }, take)
    return decisions
  }

  /// Frames at 10 Hz for ten seconds.
  ///
  /// - Parameters:
  ///   - offset: after each tenth of a second, microseconds.
  ///   - address: by the frame's number.
  private func beacon(
    _ data: [UInt8], rssi: Int8, offset: Int64, from address: (Int) -> UInt64
  ) -> [Advertisement] {
    (0..<100).map { number in
      Advertisement(
        time: UnixTime(microseconds: Int64(number) * 100_000 + offset), address: DeviceAddress(address(number)),
        rssi: rssi, data: data)
    }
  }

  @Test("decides nothing while two beacons send as one step's: a spare one is in a bag, at the other step")
  func spare() throws {
    let right = beacon(data(of: 2), rssi: -62, offset: 1) { _ in 2 }
    let left = beacon(data(of: 1), rssi: -80, offset: 2) { _ in 1 }
    #expect(try decide(left + right).last?.facing?.side == .right)
    let spare = beacon(data(of: 1), rssi: -48, offset: 3) { _ in 3 }
    let decisions = try decide(left + right + spare)
    #expect(decisions.count > 15 && decisions.allSatisfy { $0.facing == nil && !$0.isLocated })
    #expect(decisions.dropFirst().allSatisfy { $0.missing == .contested })
    #expect(decisions.last?.readings.map(\.isContested) == [true, false])
  }

  @Test("locates by a beacon whose address changes with each frame, each second, or back and forth")
  func rotation() throws {
    let addresses: [(Int) -> UInt64] = [
      { UInt64($0) }, { UInt64($0 / 10) }, { UInt64($0 % 2) }, { UInt64($0 / 10 % 2) },
    ]
    for address in addresses {
      let left = beacon(data(of: 1), rssi: -50, offset: 1, from: address)
      let right = beacon(data(of: 2), rssi: -72, offset: 2) { address($0 + 5) }
      let last = try #require(try decide(left + right).last)
      #expect(last.isLocated && last.facing?.side == .left)
    }
  }

  @Test("hears the vehicle's beacon behind another's in one advertisement, and so does the search for vehicles")
  func second() throws {
    let other = data(of: 1, vehicle: UUID(high: 1, low: 2))
    let left = beacon(other + data(of: 1), rssi: -50, offset: 1) { _ in 1 }
    let right = beacon(other + data(of: 2), rssi: -72, offset: 2) { _ in 2 }
    #expect(try decide(left + right).last?.facing?.side == .left)
    let search = VehicleSearch([World.vehicle.uuid, UUID(high: 3, low: 4)], radio: try radio(left), limit: 5)
    #expect(try search.find(until: .manual(), tell: { _ in }) == [World.vehicle.uuid])
  }
}
