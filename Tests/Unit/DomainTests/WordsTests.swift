import Domain
import Testing

@Suite("Words of the domain") struct WordsTests {
  @Test("a UUID is read in either case and written in lower case")
  func uuid() {
    let text = "5f3c1c0e-7a0b-4f57-9a55-1f0f6c1b2a90"
    #expect(UUID(text)?.description == text)
    #expect(UUID(text.uppercased()) == UUID(text))
    #expect(UUID(text)?.high == 0x5f3c_1c0e_7a0b_4f57)
  }

  @Test(
    "what is not a UUID is refused",
    arguments: [
      "", "5f3c1c0e7a0b4f579a551f0f6c1b2a90", "{5f3c1c0e-7a0b-4f57-9a55-1f0f6c1b2a90}",
      "5f3c1c0e-7a0b-4f57-9a55-1f0f6c1b2a9", "5f3c1c0e-7a0b-4f57-9a55-1f0f6c1b2a9g",
      "5f3c1c0-e7a0b-4f57-9a55-1f0f6c1b2a90", "5f3c1c0e-7a0b-4f57-9a55-1f0f6c1b2a９",
    ])
  func notUUID(text: String) { #expect(UUID(text) == nil) }

  @Test("a random UUID says that it is one")
  func randomUUID() {
    for _ in 0..<100 {
      let text = Array(UUID.random().description)
      #expect(text[14] == "4")
      #expect("89ab".contains(text[19]))
    }
  }

  @Test("nothing that MQTT gives a meaning gets into a topic")
  func topics() {
    for text in ["", "a//b", "/a", "a/", "a/+", "#", "$SYS", "a b", "ä", String(repeating: "a", count: 129)] {
      #expect(TopicPrefix(text) == nil, "\(text)")
    }
    for text in ["", "left/right", "+", "Left", "a b", String(repeating: "a", count: 33)] {
      #expect(StepID(text) == nil, "\(text)")
    }
    #expect(
      TopicPrefix("arena2036/rolling_chassis")?.status(StepID("left")!) == "arena2036/rolling_chassis/left/status")
  }

  @Test("steps that could be mistaken for each other make no vehicle")
  func ambiguousSteps() {
    let left = Step(id: StepID("left")!, side: .left, major: 1)
    func problem(_ steps: [Step]) -> Vehicle.Problem? {
      do throws(Vehicle.Problem) {
        _ = try Vehicle(name: "v", uuid: .random(), steps: steps)
        return nil
      } catch { return error }
    }
    #expect(problem([]) == .noSteps)
    #expect(problem([left, Step(id: left.id, side: .right, major: 2)]) == .sameID(left.id))
    #expect(problem([left, Step(id: StepID("right")!, side: .right, major: 1)]) == .sameMajor(1))
    #expect(problem([left, Step(id: StepID("right")!, side: .left, major: 2)]) == .sameSide(.left))
    #expect(problem([left, Step(id: StepID("right")!, side: .right, major: 2)]) == nil)
  }

  @Test("every known word is read as itself, and no two words are alike")
  func knownWords() {
    #expect(RefusalCode.known.compactMap { RefusalCode(rawValue: $0.rawValue) } == RefusalCode.known)
    #expect(Phase.known.compactMap { Phase(rawValue: $0.rawValue) } == Phase.known)
    #expect(Fault.known.compactMap { Fault(rawValue: $0.rawValue) } == Fault.known)
    #expect(Watch.known.compactMap { Watch(rawValue: $0.rawValue) } == Watch.known)
    #expect(Set(RefusalCode.known.map(\.rawValue)).count == 22)
    #expect(Set(Fault.known.map(\.rawValue)).count == 8)
  }

  @Test("a word of a later version is kept, and what is no word is refused")
  func laterWords() {
    #expect(RefusalCode(rawValue: "token_revoked") == .other("token_revoked"))
    #expect(Fault(rawValue: String(repeating: "9", count: 64))?.rawValue.count == 64)
    #expect(Phase(rawValue: "opening")?.isAtRest == false)
    #expect(Phase.known.map(\.isAtRest) == [true, false, true])
    for text in ["", "Busy", "not near", "busy\n", "not-near", "b\u{FF55}sy", String(repeating: "a", count: 65)] {
      #expect(RefusalCode(rawValue: text) == nil, "\(text)")
    }
  }

  @Test("near enough is who is located, and where the nearest zone is asked for, who is in that zone too")
  func nearEnough() {
    for zone in Zone.allCases {
      let near = PresencePolicy(methods: [.beacon], zone: .near, acceptsStatic: true)
      let immediate = PresencePolicy(methods: [.beacon], zone: .immediate, acceptsStatic: true)
      #expect(near.isNearEnough(zone, isLocated: true))
      #expect(immediate.isNearEnough(zone, isLocated: true) == (zone == .immediate))
      for policy in [near, immediate] { #expect(!policy.isNearEnough(zone, isLocated: false)) }
    }
  }

  @Test("an unknown zone is within no other")
  func zones() {
    #expect(Zone.immediate < .near)
    #expect(Zone.near < .far)
    #expect(!(Zone.unknown <= .far))
  }
}
