import Glibc
import SystemIO
import Testing

@Suite("A name that one program holds")
struct HeldNameTests {
  private let name = "stepctl-test-\(UInt64.random(in: 0 ... .max))"

  private func take(_ said: String = "") throws -> HeldName.Attempt {
    try HeldName.take(name, asking: [7], within: .seconds(30)) { Array(said.utf8) + $0 }
  }

  @Test("is one's at a time, and whoever has it says so, with its process and its user")
  func one() throws {
    guard case .taken(let held) = try take("first") else {
      Issue.record("not taken")
      return
    }
    // A question is waited for 50 ms, and a busy machine may make it late.
    let deadline = Instant.now + .seconds(30)
    var holder: HeldName.Holder?
    while holder?.answer == nil, .now < deadline {
      guard case .held(let other) = try take("second") else {
        Issue.record("taken twice")
        return
      }
      holder = other
    }
    let first = Array("first".utf8) + [7]
    #expect(holder == HeldName.Holder(process: getpid(), user: geteuid(), answer: first))
    held.close()
  }

  @Test("is free when its holder is gone")
  func free() throws {
    do {
      guard case .taken = try take() else {
        Issue.record("not taken")
        return
      }
    }
    // Its thread ends a moment later.
    let deadline = Instant.now + .seconds(30)
    while try HeldName.ask(name, [7], until: deadline) != nil, .now < deadline { usleep(1_000) }
    #expect(try HeldName(name) { $0 } != nil)
  }

  @Test("a holder that does not answer has no answer")
  func silent() throws {
    let held = try #require(try HeldName(name) { _ in [] })
    #expect(
      try HeldName.ask(name, [7], until: .now + .seconds(30)) == .init(process: getpid(), user: geteuid(), answer: nil))
    held.close()
  }

  @Test("questions that nobody asks hold nobody up for long")
  func strangers() throws {
    let held = try #require(try HeldName(name) { $0 })
    // Each is waited for 50 ms, and no longer.
    let strangers = try (0..<5).map { _ in try #require(try Stranger(name)) }
    let deadline = Instant.now + .seconds(30)
    var answer: [UInt8]?
    while answer == nil, .now < deadline { answer = try HeldName.ask(name, [1], until: deadline)?.answer }
    #expect(answer == [1])
    _ = strangers.count
    held.close()
  }

  @Test("that is too long for an address is an error")
  func long() {
    let long = String(repeating: "a", count: 107)
    #expect(throws: SystemError("use", long, code: ENAMETOOLONG)) { try HeldName(long) { $0 } }
  }

  /// Connects, and says nothing.
  private final class Stranger {
    private let socket: Int32

    init?(_ name: String) throws {
      socket = try check("create a socket") { Glibc.socket(AF_UNIX, Int32(SOCK_SEQPACKET.rawValue), 0) }
      var address = sockaddr_un()
      address.sun_family = sa_family_t(AF_UNIX)
      withUnsafeMutableBytes(of: &address.sun_path) { $0[1...].copyBytes(from: name.utf8) }
      let (socket, size) = (socket, socklen_t(3 + name.utf8.count))
      let connected = withUnsafeBytes(of: address) {
        connect(socket, $0.assumingMemoryBound(to: sockaddr.self).baseAddress, size)
      }
      if connected == -1 { return nil }
    }

    deinit { close(socket) }
  }
}

@Suite("A lock on bytes of a file")
struct ByteLockTests {
  @Test("is one open file's at a time, byte by byte, and ends with it")
  func bytes() throws {
    let path = "/tmp/stepctl-test-\(UInt64.random(in: 0 ... .max))"
    defer { unlink(path) }
    do {
      let first = try Descriptor.open(path, O_WRONLY | O_CREAT, mode: 0o600)
      let second = try Descriptor.open(path, O_WRONLY)
      #expect(try first.lock(bytes: 3..<4, path))
      #expect(try second.lock(bytes: 4..<8, path))
      #expect(try !second.lock(bytes: 3..<4, path))
      #expect(try !first.lock(bytes: 5..<6, path))
      // Another use of the file in this program releases nothing.
      _ = try Files.read(path)
      #expect(try !second.lock(bytes: 3..<4, path))
    }
    #expect(try Descriptor.open(path, O_WRONLY).lock(bytes: 0..<8, path))
  }

  @Test("is not for those who may only read the file")
  func readers() throws {
    let path = "/tmp/stepctl-test-\(UInt64.random(in: 0 ... .max))"
    defer { unlink(path) }
    _ = try Descriptor.open(path, O_WRONLY | O_CREAT, mode: 0o600)
    #expect(throws: SystemError("lock", path, code: EBADF)) {
      try Descriptor.open(path, O_RDONLY).lock(bytes: 0..<1, path)
    }
  }
}
