import Domain
import Encoding
import StepController
import StepProtocol
import TestSupport
import Testing

@Suite("The notice and the controller") struct ControllerNoticeTests {
  let bench = Bench()
  let next = SigningKey()

  private func revoking(_ subjects: Notice.Subject...) -> [Notice.Revocation] {
    subjects.map { .init($0, until: bench.time.wall + 3600) }
  }

  /// Delivers a notice.
  private func deliver(
    _ sequence: Int64, revoked: [Notice.Revocation] = [], keys: [SigningKey]? = nil, by key: SigningKey? = nil,
    vehicle: UUID = car.uuid
  ) {
    let notice = Notice(
      vehicle: vehicle, sequence: sequence, issued: bench.time.wall,
      keys: (keys ?? [bench.operatorKey]).map(\.verificationKey), revoked: revoked)
    bench.handle(.notice(Array(notice.signed(by: key ?? bench.operatorKey).utf8)))
  }

  private func id(_ rider: Rider) throws -> String { try Token(unverified: rider.token).id }

  private func refusal(_ rider: Rider) -> RefusalCode? {
    bench.send(rider.command(left, .status)).first?.answer?.refusal?.code
  }

  @Test("a token that it revokes is refused, also to stop, and another rider's is not")
  func token() throws {
    let (alice, bob) = (bench.rider(), bench.rider())
    _ = bench.open(as: alice)
    deliver(1, revoked: revoking(.token(try id(alice))))
    #expect(refusal(alice) == .tokenRevoked)
    #expect(bench.stop(as: alice).refusal == .tokenRevoked)
    // What has begun goes on.
    #expect(bench.run(for: 1_100).last?.position == .open)
    #expect(refusal(bob) == nil)
  }

  @Test("every token of a device that it revokes is refused")
  func device() {
    let device = SigningKey()
    let riders = [0, 1].map { _ in
      Rider(device: device, token: bench.rider(device: device).token, controller: bench.decryption.encryptionKey)
    }
    #expect(riders.map(refusal) == [nil, nil])
    deliver(1, revoked: revoking(.device(device.verificationKey.thumbprint)))
    #expect(riders.map(refusal) == [.tokenRevoked, .tokenRevoked])
  }

  @Test("neither a restart nor an older notice brings back what was withdrawn")
  func replayed() throws {
    let alice = bench.rider()
    deliver(1)
    deliver(2, revoked: revoking(.token(try id(alice))))
    deliver(1)
    #expect(refusal(alice) == .tokenRevoked)
    bench.start()
    #expect(refusal(alice) == .tokenRevoked)
    deliver(1)
    deliver(2)
    #expect(refusal(alice) == .tokenRevoked)
    deliver(3)
    #expect(refusal(alice) == nil, "a later notice takes the place of all before it")
  }

  @Test("one by a stranger or for another vehicle is ignored, and the log says so")
  func forged() throws {
    let alice = bench.rider()
    deliver(1, revoked: revoking(.token(try id(alice))), by: next)
    deliver(2, revoked: revoking(.token(try id(alice))), keys: [next], by: next)
    deliver(3, revoked: revoking(.token(try id(alice))), vehicle: UUID("00000000-0000-4000-8000-000000000000")!)
    bench.handle(.notice(Array("rubbish".utf8)))
    #expect(refusal(alice) == nil)
    #expect(
      bench.events.prefix(4) == [
        .noticeIgnored(.unknownKey), .noticeIgnored(.unknownKey),
        .noticeIgnored(.malformed("the notice is for another vehicle")),
        .noticeIgnored(.malformed("not a compact JWS")),
      ])
    #expect(bench.journal.medium.notice == nil)
  }

  @Test("it is in force when it is on the medium, and not before")
  func journaled() throws {
    let alice = bench.rider()
    bench.journal.isSlow = true
    deliver(1, revoked: revoking(.token(try id(alice))))
    #expect(refusal(alice) == nil)
    _ = bench.settle()
    #expect(refusal(alice) == .tokenRevoked)
    #expect(bench.events.contains(.noticed(1)))
  }

  @Test("one that cannot be written is not in force, and is tried again when it arrives again")
  func notJournaled() throws {
    let alice = bench.rider()
    bench.journal.failure = "No space left on device"
    deliver(1, revoked: revoking(.token(try id(alice))))
    #expect(bench.events == [.noticeNotJournaled("No space left on device")])
    #expect(refusal(alice) == nil)
    bench.journal.failure = nil
    deliver(1, revoked: revoking(.token(try id(alice))))
    #expect(refusal(alice) == .tokenRevoked)
  }

  @Test("a motion's journal keeps the notice")
  func kept() throws {
    let (alice, bob) = (bench.rider(), bench.rider())
    deliver(1, revoked: revoking(.token(try id(alice))))
    _ = bench.open(as: bob)
    _ = bench.run(for: 1_100)
    bench.start()
    #expect(refusal(alice) == .tokenRevoked)
  }

  @Test("a new key counts only in a notice that a present one has signed; an old key counts while it is listed")
  func keys() {
    let (old, new) = (bench.rider(), bench.rider(signedBy: next))
    func answers(_ rider: Rider) -> Bool { !bench.send(rider.command(left, .status)).isEmpty }
    #expect(answers(old) && !answers(new))
    deliver(1, keys: [bench.operatorKey, next])
    #expect(bench.trusted == [bench.operatorKey.verificationKey, next.verificationKey])
    #expect(answers(old) && answers(new))
    // The old key signs what takes it away.
    deliver(2, keys: [next])
    #expect(!answers(old) && answers(new))
    bench.start()
    #expect(bench.controller.operatorKeys == [next.verificationKey])
    #expect(!answers(old) && answers(new))
    // A stolen old key brings nothing back.
    deliver(3, keys: [bench.operatorKey], by: bench.operatorKey)
    #expect(!answers(old) && answers(new))
    deliver(4, keys: [next, bench.operatorKey], by: next)
    #expect(answers(old) && answers(new))
  }

  @Test("two that arrive while the disk is slow both count, in their order")
  func hasty() {
    bench.journal.isSlow = true
    deliver(1, keys: [bench.operatorKey, next])
    deliver(2, keys: [next], by: next)
    _ = bench.settle()
    _ = bench.settle()
    #expect(bench.controller.operatorKeys == [next.verificationKey])
    bench.start()
    #expect(bench.controller.operatorKeys == [next.verificationKey])
  }

  @Test("a controller that was given another operator's key forgets the notice of the one before")
  func otherOperator() throws {
    let alice = bench.rider()
    deliver(1, revoked: revoking(.token(try id(alice))), keys: [next])
    let controller = Controller(
      vehicle: car,
      keys: .init(
        decryption: bench.decryption, signing: bench.signing, operatorKey: SigningKey().verificationKey),
      policy: bench.policy, profile: bench.profile, journal: bench.journal.medium)
    #expect(!controller.operatorKeys.contains(next.verificationKey))
  }
}

@Suite("The notice in the journal") struct JournalNoticeTests {
  @Test("is read back")
  func roundTrip() throws {
    let key = SigningKey().verificationKey
    let notice = Notice(
      vehicle: car.uuid, sequence: 5, issued: 6, keys: [key],
      revoked: [.init(.token("a"), until: 7), .init(.device(key.thumbprint), until: 8)])
    var journal = Journal(entries: [left: .init(position: .open)])
    journal.notice = KeptNotice(notice, root: key)
    #expect(try Journal(parsing: journal.bytes) == journal)
  }

  @Test(
    "a damaged one is not taken for none",
    arguments: [
      #"{"operator notice":{}}"#, #"{"operator notice":null}"#, #"{"operator notice":{"root":1,"claims":2}}"#,
    ])
  func damaged(content: String) {
    #expect(throws: Journal.Damage.self) { try Journal(parsing: Array(content.utf8)) }
  }
}
