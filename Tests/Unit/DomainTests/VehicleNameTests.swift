import Domain
import Testing

@Suite("A vehicle's name, and what people type") struct VehicleNameTests {
  @Test(
    "letters that are easy to type stay readable",
    arguments: [
      ("Käfer", "kaefer"), ("Ka\u{308}fer", "kaefer"), ("ÉTOILE", "etoile"), ("Straße 5", "strasse-5"),
      ("Bus 1", "bus-1"), ("Škoda Łódź", "skoda-lodz"), (" Rolling  Chassis ", "rolling-chassis"), ("東京", ""),
      ("../etc", "etc"),
    ])
  func typable(_ name: String, _ typed: String) { #expect(Vehicle.typable(name) == typed) }

  @Test("a name is meant in either form, and no other is")
  func isMeant() {
    for typed in ["Käfer", "käfer", "KAEFER", "kaefer"] { #expect(Vehicle.isMeant("Käfer", by: typed)) }
    #expect(Vehicle.isMeant("東京", by: "東京") && Vehicle.isMeant("Волга", by: "волга"))
    #expect(
      !Vehicle.isMeant("東京", by: "京都") && !Vehicle.isMeant("Käfer", by: "kafer") && !Vehicle.isMeant("Van", by: ""))
  }
}
