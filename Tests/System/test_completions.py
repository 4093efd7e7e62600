"""Completions, in the shells that offer them: Tab is pressed, and what stands there then is looked at."""

import os
import re
import shutil
from contextlib import closing

import pytest

from programs import REPOSITORY, STEPCTL, wait_until
from terminal import Terminal

SCRIPTS = REPOSITORY / "completions"
READY = b"ready$"


def start(shell: str, home, environment: dict) -> Terminal:
    """An interactive shell that has read our completions and nobody's settings."""
    (home / "bin").mkdir(exist_ok=True)
    if not (home / "bin/stepctl").exists():
        (home / "bin/stepctl").symlink_to(STEPCTL)
    environment = environment | {
        "PATH": f"{home / 'bin'}:{os.environ['PATH']}", "HOME": str(home), "XDG_CONFIG_HOME": str(home / "config"),
        "TERM": "dumb" if shell == "bash" else "xterm", "PS1": READY.decode(),
    }
    if shell == "bash":
        (home / "bashrc").write_text(f"source {SCRIPTS}/stepctl.bash\nbind 'set bell-style none'\nPS1='ready$'\n")
        command = ["bash", "--noprofile", "--rcfile", home / "bashrc", "-i"]
    elif shell == "zsh":
        (home / ".zshrc").write_text(
            f"fpath=({SCRIPTS} $fpath)\nautoload -Uz compinit\ncompinit -u -d {home}/dump\n"
            "unsetopt zle_bracketed_paste prompt_sp\nsetopt no_beep list_ambiguous\nzstyle ':completion:*' menu no\n"
            "PS1='ready$'\n")
        command = ["zsh", "-i"]
        environment["ZDOTDIR"] = str(home)
    else:
        folder = home / "config/fish"
        (folder / "completions").mkdir(parents=True, exist_ok=True)
        (folder / "config.fish").write_text(
            "function fish_prompt; printf 'ready$'; end\nset -g fish_greeting\nset -g fish_autosuggestion_enabled 0\n")
        shutil.copy(SCRIPTS / "stepctl.fish", folder / "completions")
        command = ["fish", "-i"]
    terminal = Terminal(command, environment, rows=24, columns=200)
    terminal.waits_for(READY)
    return terminal


@pytest.fixture(scope="module")
def home(tmp_path_factory, file_vehicle):
    home = tmp_path_factory.mktemp("shells")
    known = home / "config/stepctl/vehicles"
    known.mkdir(parents=True)
    (known / "rolling-chassis.toml").write_text((file_vehicle.folder / "vehicle.toml").read_text())
    (home / "car").symlink_to(file_vehicle.folder)
    return home


@pytest.fixture(params=["bash", "zsh", "fish"])
def shell(request, stepctl, home, monkeypatch):
    if not shutil.which(request.param):
        pytest.skip(f"{request.param} is not installed")
    monkeypatch.chdir(home)
    with closing(start(request.param, home, stepctl.environment)) as terminal:
        yield terminal


def plain(written: bytes) -> str:
    return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]|\x1b[()][A-Z0-9]|\x1b[=>]|[\r\x07]", "", written.decode(errors="replace"))


@pytest.mark.parametrize(
    ("typed", "completed"),
    [
        ("stepctl sta", "stepctl status"),
        ("stepctl help cal", "stepctl help calibrate"),
        ("stepctl help provision to", "stepctl help provision token"),
        ("stepctl help operator keys ro", "stepctl help operator keys rotate"),
        ("stepctl open le", "stepctl open left"),
        ("stepctl stop ri", "stepctl stop right"),
        ("stepctl open --radio blue", "stepctl open --radio bluez:hci0"),
        ("stepctl open --vehicle rol", "stepctl open --vehicle rolling-chassis"),
        ("stepctl provision beacon --step le", "stepctl provision beacon --step left"),
        ("stepctl operator revoke car --rider al", "stepctl operator revoke car --rider alice"),
        ("stepctl provision token car --steps left,ri", "stepctl provision token car --steps left,right"),
    ],
    ids=[
        "command", "help", "help-group", "help-groups", "side", "side-of-two", "radio", "vehicle", "step", "rider",
        "list",
    ],
)
def test_tab_completes(shell, typed, completed):
    shell.types(typed.encode() + b"\t")
    rest = completed.removeprefix(typed)

    # A shell writes only what is added, or the line anew; zsh may quote a colon, which means the same to it.
    def stands() -> bool:
        text = plain(shell.read()).replace("\\", "")
        assert "not found" not in text and "bad substitution" not in text
        return completed in text or typed in text and rest in text.split(typed, 1)[1]

    wait_until(stands, f"{completed!r}: {plain(shell.read())!r}")
