import CodeReading
import Glibc
import SystemIO
import TestSupport
import Testing

/// Against children that say what stepctl-qr should not.
@Suite("Reading codes") struct CodeReaderTests {
  private let temporary: TemporaryFolder
  private var folder: String { temporary.path }

  init() throws { temporary = try TemporaryFolder() }

  /// What becomes of reading from a decoder that is this script.
  private func read(_ script: String) throws -> [[UInt8]] {
    let decoder = "\(folder)/decoder"
    try Files.replace(decoder, with: "#!/bin/sh\n\(script)\n".utf8, mode: 0o700)
    try Files.replace("\(folder)/picture", with: "a picture".utf8, mode: 0o600)
    var reader = try start(decoder)
    var codes: [[UInt8]] = []
    while let code = try reader.next() { codes.append(code) }
    return codes
  }

  /// Again while a child that another test has just made still has the script open for writing.
  private func start(_ decoder: String) throws -> CodeReader {
    while true {
      do {
        return try CodeReader(.open("\(folder)/picture"), patience: .seconds(30), decoder: decoder)
      } catch {
        guard case .system(let reason) = error, reason.code == ETXTBSY else { throw error }
        usleep(10_000)
      }
    }
  }

  @Test("the cameras of this computer are found, the first one first")
  func cameras() throws {
    for name in ["video10", "video2", "video0", "video1", "v4l-subdev0", "videos", "null"] {
      try temporary.write("dev/\(name)")
    }
    // The second device of a camera brings no pictures.
    for (number, index) in [(0, 0), (1, 1), (2, 0)] {
      try temporary.write("class/video\(number)/index", "\(index)\n")
    }
    #expect(
      CodeSource.cameras(devices: "\(folder)/dev", classes: "\(folder)/class")
        == ["video0", "video2", "video10"].map { "\(folder)/dev/\($0)" })
    #expect(CodeSource.cameras(devices: "\(folder)/none", classes: "\(folder)/class") == [])
  }

  @Test("codes come one after the other, up to the end")
  func codes() throws {
    #expect(try read(#"printf '\0\3cab\0\2cd\0\1e'"#) == [Array("ab".utf8), Array("d".utf8)])
  }

  @Test("a decoder reads the picture, and is told what it is")
  func picture() throws {
    #expect(
      try read(#"printf '\0\012c'; cat; printf '\0\010c%s\0\1e' "$1""#)
        == ["a picture", "picture"].map { Array($0.utf8) })
  }

  @Test(
    "a decoder that ends, dies or says something else has given up",
    arguments: [
      "exit 0", "kill -SEGV $$", "printf hello", #"printf '\0\5cab'"#, #"printf '\0\2xa'"#, #"printf '\0\0'"#,
      #"printf '\0\2f\0'"#, #"printf '\377\377c'; cat /dev/zero"#,
    ])
  func broken(script: String) {
    #expect(throws: CodeReaderError.gaveUp("\(folder)/picture")) { try read(script) }
  }

  @Test("a decoder's reason is told with the picture's name")
  func flaw() {
    #expect(throws: CodeReaderError.flaw(.damaged, "\(folder)/picture")) { try read(#"printf '\0\2f\2'"#) }
  }

  @Test("what cannot be opened is told")
  func unopened() {
    #expect(throws: CodeReaderError.system(SystemError("open", "\(folder)/none", code: ENOENT))) {
      _ = try CodeSource.open("\(folder)/none")
    }
    #expect(throws: CodeReaderError.system(SystemError("read", folder, code: EISDIR))) {
      _ = try CodeSource.open(folder)
    }
  }

  @Test("a file that is no device of Video4Linux is a picture", arguments: ["/dev/null", "/proc/self/comm"])
  func kind(path: String) throws {
    #expect(try !CodeSource.open(path).isCamera)
  }
}
