import ArgumentParser
import Domain
import Encoding
import Glibc
import NDEF
import NFC
import StepProtocol
import SystemIO
import Tags
import Terminal
import TestSupport
import Testing

@testable import OperatorCommands

@Suite("stepctl provision tag")
struct ProvisionTagTests {
  private static let content = "stepctl:5f3c1c0e-7a0b-4f57-9a55-1f0f6c1b2a90/left"

  private let shell: Shell
  private let file: String

  init() throws {
    shell = try Shell()
    file = try shell.vehicleFile()
  }

  /// Writes the tag in a field.
  private func writes(_ field: PlayedField, _ more: String..., answers: [String]? = nil) throws -> Shell.Ended {
    var shell = shell
    shell.answers = answers
    let arguments = ["--step", "left", "--vehicle", file, "--timeout", "1"] + more
    let command = try ProvisionTag.parse(arguments)
    return shell.runs { context in try command.run(in: context) { _, _, body in try body(field) } }
  }

  private func message(_ text: String) -> [UInt8] { NDEFMessage([NDEFText(text).record]).bytes }

  @Test("writes a step's name, and says so")
  func written() throws {
    let tag = PlayedType2(.ntag213)
    let ended = try writes(PlayedField(tag))
    #expect(ended.ending == .status(.done))
    #expect(ended.output == "wrote the left step's name to \(tag.target.uid) (NTAG213)\n")
    #expect(ended.errors == "hold the left step's tag to the reader (1.0 s)\n")
    #expect(tag.message == message(Self.content))
    let again = try writes(PlayedField(tag), "-q")
    #expect(again.output == "\(tag.target.uid) (NTAG213) already has the left step's name\n")
    #expect(again.errors == "")
  }

  @Test("says as JSON what it did")
  func json() throws {
    let tag = PlayedType2(.ntag215)
    let object = try #require(try writes(PlayedField(tag), "--json", "--register").objects.first)
    #expect(object["uid"] == .string(tag.target.uid.description))
    #expect(object["step"] == "left")
    #expect(object["outcome"] == "written")
    #expect(object["chip"] == "NTAG215")
    #expect(object["content"] == .string(Self.content))
    #expect(object["former"] == .null)
    #expect(object["registered"] == true)
    #expect(object["locked"] == false)
    #expect(try TemporaryFolder.text(file).contains("tags = [\"\(tag.target.uid)\"]"))
  }

  @Test("a rehearsal says what it would write, and writes nothing")
  func rehearsal() throws {
    let tag = PlayedType2(.ntag213)
    let before = tag.memory
    let ended = try writes(PlayedField(tag), "--dry-run")
    #expect(ended.ending == .status(.done))
    #expect(ended.lines == ["would write 16 pages to \(tag.target.uid) (NTAG213)", Self.content])
    #expect(tag.memory == before)
  }

  @Test("the name of another step is replaced, and named")
  func former() throws {
    let tag = PlayedType4()
    tag.hold(message(Self.content.replacing("left", with: "right")))
    let ended = try writes(PlayedField(tag))
    #expect(ended.lines.last == "it named the right step of \(Shell.vehicle) before")
    #expect(tag.message == message(Self.content))
  }

  @Test("what --replace-all gives up is named")
  func replacing() throws {
    let tag = PlayedType4()
    let others = [NDEFText("a menu").record, NDEFText("hello").record]
    tag.hold(NDEFMessage([NDEFText(Self.content).record] + others).bytes)
    let rehearsed = try writes(PlayedField(tag), "--replace-all", "--dry-run")
    #expect(rehearsed.lines.last == "would give up 2 other records")
    #expect(try writes(PlayedField(tag), "--dry-run", "--json").objects.first?["given_up"] == .null)
    let told = try writes(PlayedField(tag), "--replace-all", "--dry-run", "--json").objects.first
    #expect(told?["given_up"] == "2 other records")
    #expect(try writes(PlayedField(tag), "--replace-all").lines.last == "gave up 2 other records")
    #expect(tag.message == message(Self.content))
    tag.hold([0xD1, 0x01])
    let batch = try writes(PlayedField(tag), "--replace-all", "--batch", "--count", "1")
    #expect(batch.notes.contains("\(tag.target.uid): gave up a malformed message"))
  }

  @Test("another system's card is refused, and --replace-all is what gives it up")
  func otherSystem() throws {
    var bytes = SimulatedTag.factory(.ntag215)
    bytes.replaceSubrange(12..<24, with: [UInt8](repeating: 0, count: 12))
    bytes.replaceSubrange(200..<210, with: [UInt8](repeating: 7, count: 10))
    let tag = PlayedType2(.ntag215, bytes)
    let before = tag.memory
    for more in [[], ["--dry-run"]] {
      let ended = try writes(PlayedField(tag), more.first ?? "-q")
      #expect(ended.ending == .status(.badData))
      #expect(
        ended.notes.suffix(2) == [
          "stepctl: error: the tag is not formatted, but 3 pages of it hold data, perhaps another system's;"
            + " nothing was written",
          "hint: use another tag; --replace-all gives up the data, and formats the tag for ever",
        ])
    }
    let batch = try writes(PlayedField(tag), "--batch", "--timeout", "0.1")
    #expect(batch.ending == .status(.badData))
    #expect(batch.lines.last?.contains(",failed,") == true)
    #expect(tag.memory == before)
    #expect(try writes(PlayedField(tag), "--replace-all").lines.last == "gave up 3 pages of other data")
    #expect(tag.message == message(Self.content))
  }

  @Test("a Type 4 tag of another system that makes its messages itself is refused, and said to be one")
  func dynamicOfOthers() throws {
    let tag = PlayedType4()
    let before = message("https://x.example/t?c=00000000")
    tag.hold(before)
    tag.counterAt = before.count - 8
    for more in ["-q", "--dry-run", "--replace-all"] {
      let field = PlayedField(tag)
      let ended = try writes(field, more)
      #expect(ended.ending == .status(.badData))
      #expect(
        ended.notes.suffix(2) == [
          "stepctl: error: the tag is a dynamic one of another system: it makes another message each time, with a counter"
            + " or a code, and would overwrite the step's name; nothing was written",
          "hint: use another tag",
        ])
      #expect(tag.message == before && !field.commands.contains { $0.starts(with: [0x00, 0xD6]) })
    }
  }

  @Test("asks before it makes a tag read-only")
  func locking() throws {
    let tag = PlayedType2(.ntag213)
    let no = try writes(PlayedField(tag), "--lock", answers: ["n"])
    #expect(no.ending == .status(.failure))
    #expect(
      no.errors == """
        make the tag read-only for ever? [y/N] stepctl: error: nothing was written
        hint: without --lock the tag can be written again

        """)
    #expect(tag.message == [])
    let forbidden = try writes(PlayedField(tag), "--lock", "--no-input")
    #expect(forbidden.ending == .status(.usage))
    #expect(forbidden.errors == "stepctl: error: needs confirmation; use --yes\n")
    let yes = try writes(PlayedField(tag), "--lock", "--yes")
    #expect(yes.ending == .status(.done))
    #expect(yes.lines.last == "it is read-only now")
    let other = try writes(PlayedField(tag), "--replace-all", "--batch", "--count", "1")
    #expect(other.ending == .status(.done))
    #expect(other.lines.last?.contains(",unchanged,") == true)
  }

  @Test("a tag that leaves and comes back is written to the end, at any command")
  func leaving() throws {
    let commands = PlayedField(PlayedType2(.ntag213))
    _ = try writes(commands)
    for fault in PlayedField.Fault.allCases {
      for place in 0..<commands.commands.count {
        let tag = PlayedType2(.ntag213)
        let field = PlayedField(tag, seed: UInt64(place))
        field.faults = [place: fault]
        let ended = try writes(field)
        #expect(ended.ending == .status(.done), "\(fault) at \(place): \(ended.errors)")
        #expect(tag.message == message(Self.content), "\(fault) at \(place)")
      }
    }
  }

  @Test("no tag, a tag that does not come back, and a signal")
  func ends() throws {
    let empty = PlayedField(PlayedType2(.ntag213))
    empty.remove(for: .max)
    let none = try writes(empty, "--timeout", "0.1")
    #expect(none.ending == .status(.unavailable))
    #expect(none.notes.last == "stepctl: error: no tag came in time")

    let tag = PlayedType2(.ntag213)
    let leaving = PlayedField(tag)
    leaving.faults = [15: .leaves]
    leaving.absence = .max
    let gone = try writes(leaving, "--timeout", "0.1")
    #expect(gone.ending == .status(.inputOutput))
    #expect(gone.notes.last == "hint: the tag \(tag.target.uid) may be empty; run the command again with it")

    let stopped = PlayedField(PlayedType2(.ntag213))
    stopped.faults = [15: .leaves]
    stopped.interruptsRest = 1
    let interrupted = try writes(stopped)
    #expect(interrupted.ending == .signal(SIGINT))
    #expect(
      interrupted.notes.last == "interrupted: the tag \(tag.target.uid) may be empty; run the command again with it")
  }

  @Test("a tag of another step is refused before anything is written")
  func otherStep() throws {
    let tag = PlayedType2(.ntag213)
    let text = try TemporaryFolder.text(file)
    let listed = text.replacing("major = 2\n", with: "major = 2\ntags = [\"\(tag.target.uid)\"]\n")
    try shell.folder.write("van.toml", listed)
    let ended = try writes(PlayedField(tag))
    #expect(ended.ending == .status(.configuration))
    #expect(
      ended.errors.hasSuffix(
        """
        stepctl: error: the tag \(tag.target.uid) is listed as one of the right step's; nothing was written
        hint: use another tag, or remove this one from the vehicle file

        """))
    #expect(tag.message == [])
  }

  @Test("a batch prints a line for each tag, and goes on after one that failed")
  func batch() throws {
    let first = PlayedType2(.ntag213, uid: 0x01)
    let bad = PlayedType2(.ntag213, uid: 0x02)
    bad.deafPages = [5]
    let last = PlayedType4(uid: 0x03)
    let pile = Pile([first, bad, last])
    let command = try ProvisionTag.parse(["--step", "left", "--vehicle", file, "--batch", "--count", "2"])
    let ended = shell.runs { context in try command.run(in: context) { _, _, body in try body(pile) } }
    #expect(ended.ending == .status(.badData))
    #expect(ended.lines.first == "uid,step,outcome,chip,changes,locked,registered,reason")
    try #require(ended.lines.count == 4)
    #expect(ended.lines[1] == "\(first.target.uid),left,written,NTAG213,16,false,false,")
    #expect(
      ended.lines[2].hasPrefix("\(bad.target.uid),left,failed,,,,,\"the tag does not take what is written to page 5"))
    #expect(ended.lines[3].hasPrefix("\(last.target.uid),left,written,"))
    #expect(ended.notes.last == "2 done, 1 failed")
    #expect(ended.errors.contains("1 of 2 done; take it away\n"))
  }

  @Test("only a vehicle's own folder keeps keys of dynamic tags")
  func dynamic() throws {
    let ended = try writes(PlayedField(PlayedType4()), "--sdm")
    #expect(ended.ending == .status(.noInput))
    #expect(ended.notes.last == "hint: use --vehicle with the vehicle.toml in that folder, not with a rider's")
  }

  @Test(
    "what contradicts itself is a usage error",
    arguments: [
      (["--dry-run", "--lock"], "--dry-run excludes --lock and --register"),
      (["--sdm", "--lock"], "--sdm excludes --lock and --replace-all"),
      (["--count", "1"], "--count is for --batch"),
      (["--batch", "--count", "0"], "--count takes 1 to 10000"),
    ])
  func usage(_ arguments: [String], _ error: String) {
    let ended = shell.types(["provision", "tag", "--step", "left"] + arguments)
    #expect(ended.ending == .status(.usage))
    #expect(ended.notes == ["stepctl: error: \(error)", "hint: `stepctl provision tag --help` explains how to use it"])
  }
}

/// Tags that somebody holds to a reader, one after the other: each is taken away after it was done.
private final class Pile: TagField {
  private var fields: [PlayedField]
  /// Whether the tag was left alone since the last look: then it is taken away, and the next one comes.
  private var isIdle = false

  init(_ tags: [any PlayedTag]) { fields = tags.map { PlayedField($0) } }

  func select() throws -> NFCTarget? {
    if isIdle {
      isIdle = false
      fields.removeFirst()
      return nil
    }
    isIdle = !fields.isEmpty
    return fields.first?.select()
  }

  func exchange(_ command: [UInt8], _ framing: NFCRequest.Framing) throws -> TagOutcome {
    isIdle = false
    return fields[0].exchange(command, framing)
  }

  func restart() {
    isIdle = false
    fields[0].restart()
  }

  func rest() throws { if fields.isEmpty { throw NFCError.interrupted } }
}
