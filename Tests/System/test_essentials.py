"""What the programs for use have in place of Foundation's essentials writes what Python reads."""

import json
import subprocess

from programs import REPOSITORY

SOURCE = REPOSITORY / "Sources/Libraries/FoundationEssentials/FoundationEssentials.swift"

PROGRAM = r"""
import FoundationEssentials

enum Completion: Codable { case list(values: [String]), file }
enum Word: String, Codable { case odd = "quote \" slash \\ bell \u{7} é 🚲" }

struct Command: Codable {
  var name: String
  var hint: String?
  var isShown = true
  var count = -7
  var word = Word.odd
  var completions: [Completion] = []
  var subcommands: [Command] = []
}

let inner = Command(name: "inner\n", completions: [.list(values: ["a", "b"]), .file])
let outer = Command(name: "outer", hint: "h", isShown: false, count: 0, subcommands: [inner, Command(name: "")])
print(String(data: try JSONEncoder().encode(outer), encoding: .utf8)!)
"""


def command(name, **more):
    odd = 'quote " slash \\ bell \a é 🚲'
    return {"name": name, "isShown": True, "count": -7, "word": odd, "completions": [], "subcommands": []} | more


def test_a_command_describes_itself(tmp_path):
    (tmp_path / "main.swift").write_text(PROGRAM)
    library = ["-parse-as-library", "-static", "-emit-library", "-o", "libessentials.a", "-emit-module",
               "-module-name", "FoundationEssentials", "-module-link-name", "essentials"]  # fmt: skip
    subprocess.run(["swiftc", *library, SOURCE], cwd=tmp_path, check=True)
    subprocess.run(["swiftc", "-I.", "-L.", "main.swift", "-o", "program"], cwd=tmp_path, check=True)
    told = subprocess.run([tmp_path / "program"], capture_output=True, check=True).stdout
    inner = command("inner\n", completions=[{"list": {"values": ["a", "b"]}}, {"file": {}}])
    assert json.loads(told) == command("outer", hint="h", isShown=False, count=0, subcommands=[inner, command("")])
