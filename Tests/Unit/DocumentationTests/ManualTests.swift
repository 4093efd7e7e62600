import Foundation
import TestSupport
import Testing

@Suite("Manual pages of the commands") struct ManualTests {
  let commands: [Command]

  init() throws { commands = try Command.all.get() }

  /// ArgumentParser's own, which every command has: listed among the options, and not in a synopsis.
  static let universal: Set<String> = ["h", "-help", "-version"]

  @Test("every command has a page that carries its name, and every page is about something")
  func pages() throws {
    let present = try Repository.names(in: "man")
    let expected = commands.map(\.page) + FileFormatTests.pages + ["stepctl-open.7", "stepd-pi.7", "stepd-servo.7"]
    #expect(Set(present).symmetricDifference(expected) == [])
    for command in commands {
      #expect(try ManualPage(command.page).names.contains(command.path.joined(separator: "-")), "\(command.page)")
    }
  }

  @Test("titles are the pages' names, and references between pages lead somewhere")
  func titles() throws {
    let present = Set(try Repository.names(in: "man"))
    for file in present {
      let page = try ManualPage(file)
      let name = try #require(page.names.first, "\(file)")
      #expect(page.title == [name.uppercased(), String(file.suffix(1))], "\(file)")
      for reference in page.references where reference.hasPrefix("step") {
        #expect(present.contains(reference), "\(file) refers to \(reference)")
      }
    }
  }

  @Test("a page has the sections that people look for")
  func sections() throws {
    for file in Set(commands.map(\.page)) {
      let missing = Set(["NAME", "SYNOPSIS", "DESCRIPTION", "EXIT STATUS", "EXAMPLES", "SEE ALSO"])
        .subtracting(try ManualPage(file).sections)
      #expect(missing.isEmpty, "\(file)")
    }
  }

  @Test("the options of a page are its commands', with their values and defaults, and no others")
  func options() throws {
    for (file, sharing) in try commandsByPage() {
      let page = try ManualPage(file)
      var documented = page.arguments
      for (command, argument) in sharing.flatMap({ command in (command.arguments ?? []).map { (command, $0) } }) {
        let title: Comment = "\(file): \(argument.title)"
        guard let item = page.arguments.first(where: { matches($0, argument) }) else {
          Issue.record("\(file) does not have \(argument.title)")
          continue
        }
        documented.removeAll { matches($0, argument) }
        if argument.kind == .flag {
          #expect(item.value == nil, title)
        } else {
          #expect(item.value == argument.valueName, title)
          expectSameDefault(item, argument, of: command, title)
        }
        let words = Set(item.body.split { !$0.isLetter && !$0.isNumber && $0 != "-" && $0 != "_" }.map(String.init))
        #expect(Set(argument.allValues ?? []).isSubset(of: words), title)
      }
      #expect(documented.map(\.tag) == [], "\(file): no command takes these")
    }
  }

  @Test("the synopsis of each command has all of its options, and brackets around what may be left out")
  func synopses() throws {
    for command in commands {
      let name = command.path.joined(separator: " ")
      let page = try ManualPage(command.page)
      if command.isGroup, page.names.count > 1 { continue }  // The page has its subcommands' forms.
      let forms = page.forms.filter { $0.command == name }
      #expect(!forms.isEmpty, "\(command.page): \(name)")
      if command.isGroup { continue }
      let arguments = (command.arguments ?? []).filter { $0.flags.isDisjoint(with: Self.universal) }
      for argument in arguments where argument.kind != .positional {
        let title: Comment = "\(command.page): \(name) \(argument.title)"
        #expect(forms.contains { !$0.optional.union($0.required).isDisjoint(with: argument.flags) }, title)
        if !argument.isOptional { #expect(forms.allSatisfy { !$0.required.isDisjoint(with: argument.flags) }, title) }
      }
      for form in forms {
        let known = arguments.reduce(into: Set<String>()) { $0.formUnion($1.flags) }
        #expect(form.optional.union(form.required).subtracting(known) == [], "\(command.page): \(name)")
        #expect(form.operands == arguments.filter { $0.kind == .positional }.compactMap(\.valueName), "\(name)")
        // What may be left out stands without brackets only where a form is about it.
        let optional = arguments.filter(\.isOptional).reduce(into: Set<String>()) { $0.formUnion($1.flags) }
        if forms.count == 1 { #expect(form.required.isDisjoint(with: optional), "\(command.page): \(name)") }
      }
    }
    for file in Set(commands.map(\.page)) {
      let strangers = try ManualPage(file).forms.map(\.command)
        .filter { form in !commands.contains { $0.path.joined(separator: " ") == form } }
      #expect(strangers == [], "\(file)")
    }
  }

  @Test("a group's page lists its commands, all of them and no others")
  func subcommands() throws {
    for command in commands where command.isGroup {
      let listed = try ManualPage(command.page).items("DESCRIPTION", "")
        .filter { $0.tag.first == "Cm" }.compactMap { $0.tag.dropFirst().first }
      #expect(listed.sorted() == command.children.map(\.commandName).sorted(), "\(command.page)")
    }
  }

  @Test("stepd.8 lists every metric, with its labels")
  func metrics() throws {
    let source = try Repository.text("Sources/Vehicle/StepDaemon/Metrics.swift")
    let page = try Repository.text("man/stepd.8")
    let metrics = Set(source.matches(of: /stepd_[a-z_]+/).map { String($0.0) })
    #expect(metrics.count > 20)
    for metric in metrics { #expect(page.contains(metric), "\(metric)") }
    // This macro encloses the rest of its line, also the metrics that follow.
    #expect(!page.contains("Brq"))
  }

  @Test("open's page is short; stepctl-open.7 has the JSON, and each reason for which a vehicle refuses")
  func open() throws {
    let page = try ManualPage("stepctl-open.1")
    #expect(page.references.contains("stepctl-open.7"))
    #expect(page.subsections(of: "DESCRIPTION") == [])
    #expect(try Repository.text("man/stepctl-open.1").split(separator: "\n").count < 300)
    let source = try Repository.text("Sources/Core/Domain/Refusal.swift")
    let table = try #require(source.split(separator: "enum RefusalCode").last?.split(separator: "enum Fault").first)
    let reasons = table.matches(of: /case \.\w+: "([a-z_]+)"/).map { String($0.1) }
    #expect(reasons.count > 20)
    let details = try ManualPage("stepctl-open.7")
    #expect(details.items("DIAGNOSTICS").compactMap { $0.tag.dropFirst().first } == reasons.sorted())
    let members = details.literals("DESCRIPTION", "JSON").tags
    #expect(members.isSuperset(of: ["outcome", "step", "position", "method", "distance_m", "waiting", "refusal"]))
  }

  @Test("each rider's page says what --vehicle takes in one place")
  func vehicles() throws {
    #expect(try ManualPage("stepctl.1").sections.contains("VEHICLES"))
    for file in Set(commands.map(\.page)) {
      let body = try ManualPage(file).arguments.first { $0.flags == ["-vehicle"] }?.body ?? ""
      #expect(!body.contains("known one, as in"), "\(file)")
    }
  }

  @Test("stepctl.1 lists every exit status, and no page any other")
  func exitStatuses() throws {
    let source = try Repository.text("Sources/Core/Domain/Failure.swift")
    let statuses = source.matches(of: /^ +case \w+ = (\d+)$/.anchorsMatchLineEndings()).map { String($0.1) }
    #expect(statuses.count > 5)
    #expect(try ManualPage("stepctl.1").exitStatuses == statuses)
    for file in Set(commands.map(\.page)) {
      let listed = try ManualPage(file).exitStatuses
      #expect(listed.first == "0", "\(file)")
      #expect(listed == statuses.filter(listed.contains), "\(file)")
    }
  }

  @Test(
    "mandoc finds nothing to warn of",
    .enabled(if: Subprocess.isInstalled("mandoc"), "mandoc is not installed"))
  func lint() throws {
    for file in try Repository.names(in: "man") {
      let path = "\(Repository.root)/man/\(file)"
      let outcome = try Subprocess.run(
        ["mandoc", "-T", "lint", "-W", "warning", path], environment: ["LC_ALL": "C.UTF-8"], inheriting: false)
      #expect(outcome.status == 0 && outcome.output.isEmpty, "\(outcome.output)")
    }
  }

  // MARK: -

  /// Several commands can share a page: then the others' files are links to it.
  private func commandsByPage() throws -> [String: [Command]] {
    Dictionary(grouping: commands) {
      URL(filePath: "\(Repository.root)/man/\($0.page)").resolvingSymlinksInPath().lastPathComponent
    }
  }

  private func matches(_ item: ManualPage.Item, _ argument: Command.Argument) -> Bool {
    argument.kind == .positional ? item.flags.isEmpty && item.value == argument.valueName : item.flags == argument.flags
  }

  /// The page may say more behind the default, as its unit, and which it is with another command that shares the page:
  /// `8883; with move, as it is.`
  private func expectSameDefault(
    _ item: ManualPage.Item, _ argument: Command.Argument, of command: Command, _ title: Comment
  ) {
    guard let expected = argument.fallback, var documented = item.fallback else {
      #expect(item.fallback == argument.fallback, title)
      return
    }
    if let own = documented.range(of: "; with \(command.commandName) , ") {
      documented.removeSubrange(..<own.upperBound)
    }
    #expect(documented.hasPrefix(expected), title)
    let next = documented.dropFirst(expected.count).first
    #expect(next.map { !$0.isLetter && !$0.isNumber } ?? false, title)
  }
}
