import Glibc
import StepdConfiguration
import SystemIO
import TestSupport
import Testing

@testable import StepDaemon

extension PlayedSocket {
  /// systemd, as a service finds it.
  fileprivate func manager(_ more: [String: String] = [:]) throws -> ServiceManager? {
    let variables = more.merging(["NOTIFY_SOCKET": name]) { $1 }
    return try ServiceManager { variables[$0] }
  }
}

@Suite("Supervision") struct SupervisionTests {
  @Test("systemd is told what it is to be told, by either kind of socket", arguments: [false, true])
  func told(isAbstract: Bool) throws {
    let played = try PlayedSocket(isAbstract: isAbstract)
    let manager = try #require(try played.manager())
    manager.notify("READY=1")
    #expect(try played.next() == "READY=1")
    #expect(manager.timeout == nil)
  }

  @Test("nobody is told where nobody asks, and the watchdog of another process is not ours")
  func notAsked() throws {
    #expect(try ServiceManager { _ in nil } == nil)
    #expect(try ServiceManager { $0 == "NOTIFY_SOCKET" ? "" : nil } == nil)
    let played = try PlayedSocket(isAbstract: true)
    #expect(try played.manager(["WATCHDOG_USEC": "2000000", "WATCHDOG_PID": "1"])?.timeout == nil)
    #expect(try played.manager(["WATCHDOG_USEC": "2000000"])?.timeout == .seconds(2))
    #expect(
      try played.manager(["WATCHDOG_USEC": "2000000", "WATCHDOG_PID": "\(getpid())"])?.timeout == .seconds(2))
    for odd in ["0", "-1", "x", ""] { #expect(try played.manager(["WATCHDOG_USEC": odd])?.timeout == nil) }
    #expect(throws: SystemError("use", "NOTIFY_SOCKET", code: ENAMETOOLONG)) {
      try ServiceManager { $0 == "NOTIFY_SOCKET" ? "/" + String(repeating: "x", count: 200) : nil }
    }
  }

  @Test("it is fed four times in its time, and not by a turn that was late")
  func fed() throws {
    let played = try PlayedSocket(isAbstract: true)
    let loop = try EventLoop()
    // When the loop begins and comes to each turn, milliseconds: to that at 300 later than a turn may be.
    var times = [0, 0, 100, 200, 450, 550][...]
    let begin = Instant.now - .seconds(1)
    let supervision = Supervision(try played.manager(["WATCHDOG_USEC": "400000"]), nil) {
      let time = times.removeFirst()
      if times.isEmpty { loop.stop() }
      return begin + .milliseconds(time)
    }
    loop.schedule(at: .now) { supervision.begin(on: loop) }
    try loop.run()
    var words: [String] = []
    while let word = try played.next(within: .zero) { words.append(word) }
    #expect(words.first == "READY=1")
    #expect(Array(words.dropFirst()) == ["WATCHDOG=1", "WATCHDOG=1", "WATCHDOG=1", "WATCHDOG=1"])
  }

  @Test("a loop that is not watched is not woken")
  func idle() throws {
    let played = try PlayedSocket(isAbstract: true)
    let supervision = Supervision(try played.manager(), nil)
    let loop = try EventLoop()
    supervision.begin(on: loop)
    supervision.stopping()
    loop.schedule(at: .now + .milliseconds(700)) { loop.stop() }
    try loop.run()
    #expect(try played.next() == "READY=1")
    #expect(try played.next() == "STOPPING=1")
    #expect(try played.next(within: .zero) == nil)
  }

  @Test("what is no watchdog is said", arguments: ["/dev/none", "/etc/passwd", "/dev/null"])
  func noWatchdog(path: String) throws {
    let setting = ControllerFile.Watchdog(device: path)
    switch path {
    case "/dev/none": #expect(throws: SystemError("open", path, code: ENOENT)) { try setting.check() }
    case "/etc/passwd": #expect(throws: SystemError("open", path, code: ENODEV)) { try setting.check() }
    default: #expect(throws: SystemError("set the time of", path, code: ENOTTY)) { try Watchdog(setting) }
    }
  }

  @Test(
    "a kernel whose watchdog is fed, and then closed, lives on; one whose is not ends",
    .enabled(if: Rig.hasKernel, "\(Rig.missing)"), arguments: ["closed", "hungry"])
  func watchdog(name: String) {
    let (status, output) = Rig.run("KernelWatchdogCases.\(name)", "--scn none --kernel softdog.soft_panic=1")
    if name == "closed" {
      #expect(status == 0 && output.contains("Test run with 1 test"), "\(output)")
    } else {
      #expect(status == 125 && output.contains("Software Watchdog Timer expired"), "\(output)")
    }
  }
}

@Suite(
  "A watchdog inside of a kernel", .serialized,
  .enabled(if: Rig.isHere, "runs in a kernel that another test starts"))
struct KernelWatchdogCases {
  private let setting = ControllerFile.Watchdog(device: "/dev/watchdog", timeout: 5)

  @Test func closed() throws {
    let watchdog = try Watchdog(setting)
    for _ in 0..<14 {
      usleep(500_000)
      watchdog.feed()
    }
    watchdog.close()
    usleep(7_000_000)
  }

  @Test func hungry() throws {
    let watchdog = try Watchdog(setting)
    usleep(10_000_000)
    watchdog.close()
  }
}
