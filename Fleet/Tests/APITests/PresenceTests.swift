import Domain
import Testing

@testable import API

@Suite struct PresenceTests {
  @Test func `an old word of the broker counts when the vehicle was heard since`() {
    let (presence, car) = (Presence(), UUID.random())
    presence.begin(at: 100)
    #expect(presence.isOnline(car, heard: 100) == nil)
    // It may be what a broker had on its disk.
    presence.note(car, isOnline: true, at: 101)
    #expect(presence.isOnline(car, heard: nil) == nil && presence.isOnline(car, heard: 99) == nil)
    #expect(presence.isOnline(car, heard: 100) == true)
    presence.note(car, isOnline: false, at: 120)
    #expect(presence.isOnline(car, heard: 110) == false && presence.vehicles[car]?.since == 120)
    presence.note(car, isOnline: true, at: 130)
    #expect(presence.isOnline(car, heard: nil) == true)
    presence.end(at: 140)
    presence.end(at: 150)
    #expect(presence.isOnline(car, heard: 139) == nil && presence.awaySince == 140)
    presence.begin(at: 160)
    presence.note(car, isOnline: true, at: 161)
    #expect(presence.isOnline(car, heard: 139) == nil && presence.awaySince == nil)
  }
}
