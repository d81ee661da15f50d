"""README.md and docs/**/*.md do what they say: their blocks are run, and what they print is compared.

Of the fenced blocks, ``console`` ones are commands (``$ edgefl ...``) with what they print, ``python`` ones
are executed, and a block of any language with ``title=FILE`` is a file that is written first. A ``text
printed`` block is what the ``python`` block before it prints. All blocks of one page share one directory,
which is on ``EDGEFL_PATH``. Blocks of other kinds are for reading only.

In what a command prints, ``...`` stands for anything and white space at the ends of lines for nothing.
Standard error is left out unless the command ends in ``2>&1``. ``exit=2`` after ``console`` is the status of
its last command; all others must exit with 0. In a block with ``trained`` any number stands for any other:
what training comes to depends on the processor, whose rounding errors grow.
"""

import difflib
import io
import re
import shlex
import traceback
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

import pytest
from nightly import mostly

from edgefl.cli import main

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
# Of some seconds and more, with commands that other pages and tests have as well.
LONG = """costs figures fleets managing measures on-device python replay repetitions start trackers
uncertainty validation tutorials/board tutorials/phones tutorials/stragglers"""
AT_NIGHT = {ROOT / "docs" / f"{name}.md" for name in LONG.split()}

_FENCE = re.compile(r"^```(?P<language>[\w+-]*)[ \t]*(?P<info>.*)$")
_MERGED = "2>&1"


@dataclass(frozen=True)
class Block:
    """A fenced block: its words after the backquotes, its text, and the line its text begins on."""

    language: str
    info: dict[str, str]
    text: str
    line: int


@dataclass(frozen=True)
class Command:
    """A command of a console block, what it should print, and the line it stands on."""

    text: str
    expected: str
    line: int


def blocks_of(text: str) -> list[Block]:
    """The fenced blocks of a page.

    Raises:
        ValueError: one is not closed.
    """
    found, opened, inside = [], None, []
    for number, line in enumerate(text.splitlines(), start=1):
        fence = _FENCE.match(line)
        if opened is not None and line.rstrip() == "```":
            found.append(Block(*opened, "\n".join(inside) + "\n", number - len(inside)))
            opened, inside = None, []
        elif opened is not None:
            inside.append(line)
        elif fence:
            words = (word.partition("=") for word in shlex.split(fence["info"]))
            opened = fence["language"], {key: value for key, _, value in words}
    if opened is not None:
        raise ValueError(f"a block of {opened[0] or 'text'} is not closed")
    return found


def commands_of(block: Block) -> list[Command]:
    """The commands of a console block; a line that ends in a backslash goes on in the next.

    Raises:
        ValueError: something stands before the first command.
    """
    found: list[Command] = []
    open_ended = False
    for number, line in enumerate(block.text.splitlines(), start=block.line):
        if open_ended:
            found[-1] = Command(found[-1].text[:-1] + line.strip(), "", found[-1].line)
        elif line.startswith("$ "):
            found.append(Command(line[2:].rstrip(), "", number))
        elif found:
            last = found[-1]
            found[-1] = Command(last.text, f"{last.expected}{line}\n", last.line)
        elif line.strip():
            raise ValueError(f"line {number}: {line!r} stands before the first command")
        open_ended = bool(found) and not found[-1].expected and found[-1].text.endswith("\\")
    return found


def tidy(text: str) -> str:
    """The text without white space at the ends of lines and without blank lines around it."""
    return "\n".join(line.rstrip() for line in text.splitlines()).strip("\n")


def numberless(text: str) -> str:
    """The text without what its numbers are and how wide they are."""
    return re.sub(r"\d[\d.,]*", "0", re.sub(r" +|━+", " ", text))


def difference(expected: str, actual: str, seen: Callable[[str], str] = str) -> str:
    """Where two texts differ, line by line; empty where ``expected``, with its ``...``, covers ``actual``.

    Args:
        expected: what the page has.
        actual: what was printed.
        seen: of each, what is compared.
    """
    wanted, found = tidy(expected), tidy(actual)
    pattern = ".*?".join(re.escape(seen(piece)) for piece in wanted.split("..."))
    if re.fullmatch(pattern, seen(found), re.DOTALL):
        return ""
    return "\n".join(
        difflib.unified_diff(wanted.splitlines(), found.splitlines(), "the page", "printed", lineterm="")
    )


def run(command: str) -> tuple[str, int]:
    """What ``edgefl ...`` prints and its exit status; it runs in this process, where torch is loaded once.

    Raises:
        ValueError: it is another program's.
    """
    program, *arguments = shlex.split(command.removesuffix(_MERGED))
    if program != "edgefl":
        raise ValueError(f"only edgefl is run here, not {program!r}; write the block as ```bash or ```text")
    out = io.StringIO()
    err = out if command.endswith(_MERGED) else io.StringIO()
    status = 0
    with redirect_stdout(out), redirect_stderr(err):
        try:
            main(arguments)
        except SystemExit as exit_:
            status = int(exit_.code or 0)
    return out.getvalue() + (err.getvalue() if status and err is not out else ""), status


def failures_of_console(block: Block) -> list[str]:
    """What the commands of a block did otherwise than it says."""
    commands, found = commands_of(block), []
    seen = numberless if "trained" in block.info else str
    for command in commands:
        wanted = int(block.info.get("exit", "0")) if command is commands[-1] else 0
        printed, status = run(command.text)
        differs = difference(command.expected, printed, seen)
        if status != wanted:
            differs += f"\nexited with {status}, not {wanted}"
        if differs:
            found.append(f"line {command.line}: $ {command.text}\n{differs}")
    return found


def failures_of_python(
    block: Block, page: Path, names: dict[str, object], printed: Block | None = None
) -> list[str]:
    """The traceback of a block that fails, or how what it prints differs.

    Args:
        block: the block.
        page: the page that it is on.
        names: what the page's earlier blocks defined.
        printed: what it should print, if the page says so.
    """
    out = io.StringIO()
    try:
        with redirect_stdout(out):
            # Blank lines in front make a traceback's line numbers the page's.
            exec(compile("\n" * (block.line - 1) + block.text, str(page), "exec"), names)  # noqa: S102
    except Exception:  # noqa: BLE001 - whatever it raises is what the reader would get
        return [f"line {block.line}:\n{traceback.format_exc()}"]
    differs = "" if printed is None else difference(printed.text, out.getvalue())
    return [f"line {printed.line}:\n{differs}"] if printed and differs else []


@pytest.mark.parametrize(
    "page", mostly(PAGES, {*PAGES} - AT_NIGHT), ids=lambda page: str(page.relative_to(ROOT))
)
def test_blocks_of_a_page(page, tmp_path, monkeypatch, request):
    """Every file block can be used, every python block runs, every console block prints what stands there."""
    if page in AT_NIGHT:
        # Only these export, and to import the exporter takes longer than the others take.
        request.getfixturevalue("one_registry")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("EDGEFL_PATH", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    blocks = blocks_of(page.read_text(encoding="utf-8"))
    for block in blocks:
        if "title" in block.info:
            file = tmp_path / block.info["title"]
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(block.text, encoding="utf-8")
    names: dict[str, object] = {"__name__": "__main__"}
    failures: list[str] = []
    for block, after in zip(blocks, [*blocks[1:], None], strict=False):
        if "title" in block.info:
            continue
        if block.language == "console":
            failures += failures_of_console(block)
        elif block.language == "python":
            printed = after if after and "printed" in after.info else None
            failures += failures_of_python(block, page, names, printed)
    assert not failures, "\n\n".join([page.name, *failures])


def test_a_wrong_output_is_found():
    """The comparison sees a changed line, and lets only ``...`` and trailing blanks pass."""
    assert difference("a ... d  \n\n", "a b\nc d\n") == ""
    assert "-a 1\n+a 2" in difference("a 1\nb\n", "a 2\nb\n")


def test_what_training_comes_to_is_compared_without_its_numbers():
    """Another accuracy in a column of another width passes, another word does not."""
    page = "accuracy │ 93.3% │  3.02 MB\n━━━━╇━━\n"
    assert difference(page, "accuracy │     8.25% │ 2 MB\n━━━╇━━━━\n", numberless) == ""
    assert difference(page, "loss │ 93.3% │  3.02 MB\n━━━━╇━━\n", numberless)
