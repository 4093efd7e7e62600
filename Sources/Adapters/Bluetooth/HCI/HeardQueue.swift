import Ranging
import Domain

/// What an event brought and is not told yet: one event may carry several reports.
struct HeardQueue {
  private var reports = AdvertisingReports()
  private var waiting = ArraySlice<Advertisement>()

  /// Adds the reports of an HCI event, if it has any.
  ///
  /// Of one that is torn, those before the tear are added. It is not worth an error: a capture may hold only so many
  /// bytes of each packet, and what a controller sends next stands by itself.
  mutating func add(_ event: Span<UInt8>, heardAt time: UnixTime) {
    _ = reports.read(event: event) { address, rssi, data in
      waiting.append(Advertisement(time: time, address: address, rssi: rssi, copying: data))
    }
  }

  mutating func add(_ advertisement: Advertisement) { waiting.append(advertisement) }

  var first: Advertisement? { waiting.first }

  mutating func popFirst() -> Advertisement? { waiting.popFirst() }
}
