"""What is typed wrongly, and what every command says of itself."""

import errno
import os
import re
import stat
import subprocess

import pytest

from programs import BINARIES, PATIENCE, STEPCTL, STEPD, Running

COMMANDS = [
    (),
    ("scan",),
    ("locate",),
    ("open",),
    ("close",),
    ("status",),
    ("provision",),
    ("provision", "vehicle"),
    ("provision", "token"),
    ("config",),
    ("config", "show"),
    ("config", "path"),
    ("config", "import"),
    ("doctor",),
    ("calibrate",),
    ("provision", "tag"),
    ("provision", "qr"),
    ("provision", "beacon"),
    ("unlock",),
    ("lock",),
]

WRONG = [
    ("opne",),
    ("--jsno",),
    *[(*command, "--no-such-flag") for command in COMMANDS[1:]],
    *[(*command, "one", "too", "many") for command in COMMANDS[1:]],
    ("provision", "no-such-thing"),
    ("config", "no-such-thing"),
    ("open", "--side"),
    ("open", "--side", "top"),
    ("open", "--side", "Left"),
    ("close", "--side", "left,right"),
    ("open", "top"),
    ("open", "left", "right"),
    ("open", "left", "--side", "right"),
    ("open", "--watch", "--by", "nfc"),
    ("open", "--side", "left", "--by", "magic"),
    ("open", "--side", "left", "--timeout", "soon"),
    ("locate", "--interval", "0"),
    ("locate", "--interval", "61"),
    ("locate", "--interval", "nan"),
    ("locate", "--timeout", "ten"),
    ("scan", "--timeout", ""),
    ("status", "--vehicle"),
    ("provision", "vehicle"),
    ("provision", "vehicle", "car", "--port", "0"),
    ("provision", "vehicle", "car", "--port", "65536"),
    ("provision", "vehicle", "car", "--uuid", "rubbish"),
    ("provision", "vehicle", "car", "--topic", "a//b"),
    ("provision", "vehicle", "car", "--topic", "a/#"),
    ("provision", "vehicle", "car", "--host", "0.0.0.0"),
    ("provision", "vehicle", "car", "--host", "a b"),
    ("provision", "vehicle", "car", "--servo", "steam"),
    ("provision", "vehicle", "car", "--force", "--relocate"),
    ("provision", "vehicle", "car", "--name", ""),
    ("provision", "renew", "car", "--host", "car.example"),
    ("provision", "relocate", "car", "--port", "1883"),
    ("provision", "token", "car"),
    ("provision", "token", "--rider", "alice"),
    ("provision", "token", "car", "--rider", "../alice"),
    ("provision", "token", "car", "--rider", ".alice"),
    ("provision", "token", "car", "--rider", ""),
    ("provision", "token", "car", "--rider", "alice", "--for", "8"),
    ("provision", "token", "car", "--rider", "alice", "--for", "0h"),
    ("provision", "token", "car", "--rider", "alice", "--for", "-1h"),
    ("provision", "token", "car", "--rider", "alice", "--for", "1.5h"),
    ("provision", "token", "car", "--rider", "alice", "--for", "36501d"),
    ("provision", "token", "car", "--rider", "alice", "--for", "9223372036854775807d"),
    ("provision", "token", "car", "--rider", "alice", "--steps", "left,left"),
    ("provision", "token", "car", "--rider", "alice", "--steps", ""),
    ("provision", "token", "car", "--rider", "alice", "--steps", "left,"),
    ("traffic", "delay", "--feed", "file:none", "--plot", "delay.png"),
]


@pytest.mark.parametrize("arguments", WRONG, ids=" ".join)
def test_what_is_typed_wrongly_is_a_usage_error(stepctl, tmp_path, arguments):
    ended = stepctl(*arguments, folder=tmp_path)
    assert (ended.status, ended.stdout) == (64, "")
    assert re.fullmatch(r"stepctl: error: [^A-Z\n].*[^.\n]\n(hint: .*[^.\n]\n)?", ended.stderr)
    assert list(tmp_path.iterdir()) == [], "nothing was made"


@pytest.mark.parametrize(
    "line",
    [
        ("stepctl", "opne"),
        ("stepctl", "provision", "vehicel"),
        ("stepctl-operator", "opne"),
        ("stepd", "--no-such-flag"),
        ("stepctl-qr", "picture"),
        ("stepctl-traffic", "serve", "", "0", "nowhere", "nowhere", "nowhere", "", ""),
    ],
    ids=" ".join,
)
def test_a_library_that_was_there_first_takes_no_arguments_away(stepctl, preloaded, tmp_path, line):
    def answer(*arguments, **variables):
        ended = subprocess.run(
            [BINARIES / line[0], *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=PATIENCE,
            env=stepctl.environment | variables,
            cwd=tmp_path,
        )
        return ended.returncode, ended.stdout, ended.stderr

    early = str(preloaded("early"))
    assert answer(*line[1:], LD_PRELOAD=early) == answer(*line[1:]) != answer(LD_PRELOAD=early)


@pytest.mark.parametrize("command", COMMANDS[1:], ids=" ".join)
def test_every_command_fails_with_an_object_where_json_is_asked_for(stepctl, command):
    for arguments in ((*command, "--no-such-flag", "--json"), ("--json", *command, "--no-such-flag")):
        ended = stepctl(*arguments)
        failure = ended.outcome
        assert (ended.status, failure) == (64, {"outcome": "failed"})


@pytest.mark.parametrize(
    ("arguments", "error", "hint"),
    [
        (("opne", "--side", "left"), "there is no command `stepctl opne`", "did you mean `stepctl open`?"),
        (
            ("provision", "tga", "--step", "left"),
            "there is no command `stepctl provision tga`",
            "did you mean `stepctl provision tag`?",
        ),
        (("unleash",), "there is no command `stepctl unleash`", "`stepctl --help` lists the commands"),
        (("open", "left", "car"), 'unexpected argument "car"', "name a vehicle with --vehicle"),
        (
            ("operator", "tokens", "--vehicle", "car"),
            'unknown option "--vehicle"',
            "name the vehicle without an option: stepctl operator tokens <dir>",
        ),
        (("config", "", "path"), "the command is empty", "`stepctl config --help` lists the commands"),
    ],
)
def test_a_mistyped_command_is_what_is_complained_of(stepctl, arguments, error, hint):
    ended = stepctl(*arguments)
    assert (ended.status, ended.stdout) == (64, "")
    assert ended.stderr == f"stepctl: error: {error}\nhint: {hint}\n"


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: " ".join(command) or "stepctl")
def test_every_command_says_what_it_is(stepctl, command):
    for flag in ("--help", "-h"):
        ended = stepctl(*command, flag)
        assert (ended.status, ended.stderr) == (0, "")
        usage = re.search(r"^USAGE: (.*)$", ended.stdout, re.MULTILINE)
        assert usage[1].startswith(" ".join(("stepctl", *command)))
        assert max(map(len, ended.stdout.splitlines())) <= 80


def test_every_command_is_found_by_help(stepctl):
    found = stepctl("help", "--all").stdout
    assert all(f"\n  {command[0]} " in found for command in COMMANDS if command)
    assert stepctl("help", "provision", "token").stdout == stepctl("provision", "token", "--help").stdout


def test_a_rider_is_shown_what_is_a_riders_and_a_technician_everything(stepctl):
    technicians = ["\n  scan ", "\n  provision ", "\n  traffic ", "--call-radio", "h4:"]
    for command in ((), ("open",), ("close",), ("locate",)):
        brief, everything = stepctl("help", *command).stdout, stepctl("help", *command, "--all").stdout
        assert not any(word in brief for word in technicians)
        assert f"MORE, FOR TECHNICIANS: {' '.join(('stepctl', 'help', *command, '--all'))}\n" in brief
        assert all(word in everything for word in technicians if not command or word == "h4:")
        assert max(map(len, everything.splitlines())) <= 80
    assert "--call-radio" in stepctl("help", "open", "--all").stdout
    assert stepctl("help", "traffic", "--all").stdout == stepctl("traffic", "--help", "--all").stdout
    assert "\n  watch " in stepctl("help", "--all", "traffic").stdout


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: " ".join(command) or "stepctl")
def test_every_command_knows_the_version(stepctl, command):
    ended = stepctl(*command, "--version")
    assert (ended.status, ended.lines[0], ended.stderr) == (0, "0.1.0", "")


def test_a_program_can_read_the_version(stepctl):
    told = stepctl("--version", "--json").objects[0]
    assert [told["version"], *told["build"]] == stepctl("--version").lines


@pytest.mark.parametrize(
    ("arguments", "status", "output"),
    [
        (["--version"], 0, "0.1.0\n"),
        (["--help"], 0, "OVERVIEW: Moves entry steps for authorized riders who stand at them.\n"),
        (["--no-such-flag"], 64, 'stepd: error: unknown option "--no-such-flag"\n'),
        (["stepd.toml"], 64, 'stepd: error: unexpected argument "stepd.toml"\n'),
        (["--config", "nowhere.toml"], 66, "stepd: error: cannot open nowhere.toml: No such file or directory\n"),
    ],
)
def test_stepd_says_what_it_is_and_what_is_wrong(stepctl, transcript, tmp_path, arguments, status, output):
    log = tmp_path / "stepd.log"
    ended = Running([STEPD, *arguments], log, stepctl.environment, transcript).ends()
    assert ended.status == status
    said, silent = (ended.stdout, ended.stderr) if status == 0 else (ended.stderr, ended.stdout)
    assert said.startswith(output) and silent == ""


def test_colors_are_for_terminals_only(stepctl, shared_vehicle, shared_rider):
    ended = shared_rider.moves("open", "right")
    assert ended.status == 4 and "\x1b" not in ended.stdout + ended.stderr
    assert shared_vehicle.is_unmoved()


def test_quiet_leaves_results_and_errors_and_verbose_says_more(shared_vehicle, shared_rider):
    quiet = shared_rider.moves("open", "right", "-q")
    assert quiet.stderr.splitlines()[0].startswith("stepctl: error: ")
    verbose = shared_rider.types("status", "-v")
    chain = [f"connecting to localhost:{shared_vehicle.port}", "connected, as the broker's certificate was checked"]
    assert (verbose.status, verbose.stderr.splitlines()) == (0, chain)
    messages = shared_rider.types("status", "-vv").stderr.splitlines()
    topics = [line.split()[:2] for line in messages if line[0] in "<>"]
    assert [">", shared_vehicle.set_position("left")] in topics and ["<", shared_vehicle.status("right")] in topics
    assert shared_vehicle.is_unmoved()


@pytest.mark.parametrize("kind", ["pipe", "link to a pipe"])
def test_an_output_that_is_no_file_is_written_into_and_stays(stepctl, tmp_path, kind):
    """Root could replace /dev/null or /dev/stdout by a file, and every other program would notice."""
    given = tmp_path / "pipe"
    os.mkfifo(given)
    if kind != "pipe":
        given = tmp_path / "link"
        given.symlink_to("pipe")
    # A writer that finds no reader would wait.
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    try:
        for arguments in (("enroll", "--name", "anna"), ("provision", "keys", tmp_path / "keys")):
            ended = stepctl(*arguments, "--output", given, XDG_CONFIG_HOME=str(tmp_path))
            assert (tmp_path / "pipe").is_fifo() and given.is_symlink() == (kind != "pipe")
            assert ended.status == 0 and os.read(reader, 65536).startswith(b"eyJ")
    finally:
        os.close(reader)


def test_a_full_disk_is_told_whatever_writes_there(stepctl, tmp_path):
    """The device is a copy, which a program that replaces it may spoil."""
    full = tmp_path / "full"
    try:
        os.mknod(full, 0o600 | stat.S_IFCHR, os.makedev(1, 7))
        full.write_text("x")
    except PermissionError:
        pytest.skip("this user may not make, or not open, a device")
    except OSError as error:
        assert error.errno == errno.ENOSPC
    ended = stepctl("enroll", "--name", "anna", "--output", full, XDG_CONFIG_HOME=str(tmp_path))
    assert (ended.status, ended.error) == (74, f"cannot write {full}: No space left on device")
    assert full.is_char_device()


def test_a_name_that_begins_with_a_hyphen_is_a_value(stepctl, tmp_path):
    """Thumbprints and tokens' names are base64url: one in 64 begins so."""
    assert stepctl("provision", "vehicle", tmp_path / "car", "--quiet").status == 0
    for option, value in (("--device", "-" + "A" * 42), ("--token", "-abc")):
        ended = stepctl("operator", "revoke", tmp_path / "car", option, value)
        assert (ended.status, ended.error) == (1, "no unexpired token matches")


@pytest.mark.parametrize("columns", [80, 60])
def test_what_comes_next_fits_into_the_terminal(on_terminal, tmp_path, columns):
    screen = on_terminal([STEPCTL], columns=columns, HOME=str(tmp_path))
    assert screen.ends() == 0
    lines = re.sub(r"\x1b\[[0-9;]*m", "", screen.written.decode()).splitlines()
    assert any("stepctl login URL" in line for line in lines) and any("where you book" in line for line in lines)
    assert max(map(len, lines)) <= columns, lines
