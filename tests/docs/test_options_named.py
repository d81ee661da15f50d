"""Commands and options that pages name exist: a renamed option turns its page red."""

import re
from pathlib import Path

import pytest
import typer

from edgefl.cli.answering import app

ROOT = Path(__file__).parents[2]
PAGES = [*ROOT.glob("*.md"), *sorted((ROOT / "docs").rglob("*.md"))]
COMMANDS = typer.main.get_command(app).commands
OPTIONS = {
    name: {option for one in command.params for option in [*one.opts, *one.secondary_opts]} | {"--help"}
    for name, command in COMMANDS.items()
}
# Those of the suite and of other programs.
OTHERS = {"--bless"}


def _named(text: str) -> list[str]:
    """What stands in code: between backquotes, and in the lines of blocks."""
    blocks = re.findall(r"^```[^\n]*\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    lines = [line.removeprefix("$ ") for block in blocks for line in block.replace("\\\n", " ").splitlines()]
    spans = re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL))
    return [*lines, *spans]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_what_is_named_exists(page):
    """Of `edgefl COMMAND --option` the command and its options; of an option alone, some command's."""
    some = set[str]().union(*OPTIONS.values())
    for code in _named(page.read_text(encoding="utf-8")):
        options = set(re.findall(r"(?<![\w-])--[a-z][a-z0-9-]*", code))
        command = re.match(r"(?:\S*/)?edgefl ([a-z]+)\b", code)
        if command:
            assert command[1] in COMMANDS, code
            assert options <= OPTIONS[command[1]], code
        elif code.startswith("--"):
            assert options <= some | OTHERS, code


def test_commands_are_found():
    """In blocks, with what goes on in the next line, and in sentences."""
    text = "`edgefl run X`\n```sh\nedgefl plot X \\\n  --out Y\n```\n"
    assert _named(text) == ["edgefl plot X    --out Y", "edgefl run X"]
