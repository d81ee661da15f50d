"""A hook of MkDocs that makes the reference pages of the code: every key, component, device and command."""

import inspect
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import typer
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from mkdocs.utils import get_relative_url
from pydantic import BaseModel

import edgefl
from edgefl.cli.answering import app
from edgefl.core import catalogue
from edgefl.core.fleet import Cell, Failures, Fleet, FleetMember
from edgefl.core.scenario import (
    Checkpointing,
    Evaluation,
    LocalTraining,
    Public,
    Scenario,
    Server,
    Tariffs,
    TaskSpec,
    Until,
    Wire,
)
from edgefl.core.users import Users
from edgefl.planning.describe import describe, parameters

# A scenario's sections, as headings and anchors.
SECTIONS: Mapping[str, type[BaseModel]] = {
    "the file": Scenario,
    "task": TaskSpec,
    "task.public": Public,
    "local": LocalTraining,
    "server": Server,
    "server.until": Until,
    "evaluate": Evaluation,
    "wire": Wire,
    "checkpoint": Checkpointing,
    "costs": Tariffs,
    "fleet": Fleet,
    "fleet.members": FleetMember,
    "fleet.cells": Cell,
    "fleet.users": Users,
    "fleet.failures": Failures,
}
# A page for each kind that has a name of its own in a scenario; the others of a few lines share one.
ALONE = (
    "methods",
    "models",
    "datasets",
    "partitions",
    "policies",
    "selectors",
    "measures",
    "devices",
    "links",
)
_FILES = ("profiles", "scenarios", "validation")
ROOT = Path(__file__).parents[1]
_LINK = re.compile(r"(?<=\]\()(?![a-z]+:|#)([^)#\s]+)")
# What the suite reads of a block's first line beside its title: `console exit=2`.
_FENCE = re.compile(r"^```(\w+)(?: (?!title)\S+)*(?: title=(\S+))?(?: \S+)*$", re.MULTILINE)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the README as home, what is made of the code, and files outside the folder to which pages link."""
    written = {"index.md": (ROOT / "README.md").read_text(encoding="utf-8")}
    written |= {f"reference/{name}.md": text for name, text in pages().items()}
    for page in [ROOT / "README.md", *ROOT.glob("docs/**/*.md")]:
        for link in _LINK.findall(page.read_text(encoding="utf-8")):
            path = (page.parent / link).resolve()
            if not path.is_relative_to(ROOT / "docs"):
                # Of results as tables, the source is what is cited.
                written[_place(path)] = path.read_text(encoding="utf-8")
    for uri, text in written.items():
        files.append(File.generated(config, uri, content=text))
    return files


def on_page_markdown(markdown: str, *, page: Page, **_: Any) -> str:
    """Links lead to where files are in the site; a block's title is quoted."""
    uri = Path(page.file.src_uri)
    here = ROOT if uri.name == "index.md" else ROOT / "docs" / uri.parent

    def moved(link: re.Match[str]) -> str:
        return os.path.relpath(_place((here / link[0]).resolve()), uri.parent)

    return _FENCE.sub(_fence, _LINK.sub(moved, markdown))


def on_page_content(html: str, *, page: Page, files: Files, **_: Any) -> str:
    """Links of notebooks, which MkDocs leaves as they are, lead to pages."""
    if not page.file.src_uri.endswith(".ipynb"):
        return html

    def moved(link: re.Match[str]) -> str:
        uri = os.path.normpath(Path(page.file.src_uri).parent / link[1])
        if (target := files.get_file_from_path(uri)) is None:
            raise PluginError(f"{page.file.src_uri} has a link to {link[1]}, which is no page")
        return f'href="{get_relative_url(target.url, page.url)}'

    return re.sub(r'href="([\w./-]+\.md)', moved, html)


def _place(path: Path) -> str:
    """Where a file of the checkout is in the site."""
    if path.is_relative_to(ROOT / "docs"):
        return str(path.relative_to(ROOT / "docs"))
    return str(path.relative_to(ROOT)).replace(".md", ".txt")


def _fence(found: re.Match[str]) -> str:
    language, title = found.groups()
    return f"```{language}" + (f' title="{title}"' if title else "")


def pages() -> dict[str, str]:
    """The pages' Markdown, by name."""
    others = [kind for kind in catalogue.KINDS if kind not in (*ALONE, *_FILES)]
    return {
        "scenario": "\n\n".join(_scenario()),
        **{kind: "\n\n".join(_kind(kind, "#")) for kind in ALONE},
        "components": "\n\n".join(
            [
                "# Other components",
                *chain.from_iterable(_kind(kind, "##") for kind in others),
            ]
        ),
        "shipped": "\n\n".join(["# Shipped files", *(_files(kind) for kind in _FILES)]),
        "commands": "\n\n".join(_commands()),
        "python": "\n\n".join(["# Python", *(_object(name) for name in edgefl.__all__)]),
    }


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [heads, ["---"] * len(heads), *([_cell(one) for one in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;").replace("\n", " ")


def _scenario() -> Iterator[str]:
    yield "# Keys of a scenario"
    yield "[Scenarios](../scenarios.md) has examples; `edgefl schema` prints the same for editors."
    for title, record in SECTIONS.items():
        yield f"## {title}"
        rows = [row for row in parameters(record) if row[0] in record.model_fields]
        yield table(
            ("key", "default", "type", "meaning"), [(f"`{row[0]}`", *_named(title, row)) for row in rows]
        )


def _named(title: str, row: Sequence[str]) -> Sequence[str]:
    """A key's default, type and meaning; a section's default is its own."""
    key, _, _, meaning = row
    section = key if title == "the file" else f"{title}.{key}"
    if section not in SECTIONS:
        return row[1:]
    return "required" if row[1] == "required" else "", f"[{section}](#{section.replace('.', '')})", meaning


def _kind(kind: str, mark: str) -> Iterator[str]:
    """All of a kind, below a heading."""
    yield f"{mark} {kind.capitalize()}"
    for name, entry in catalogue.entries(kind).items():
        found = describe(kind, name)
        yield f"{mark}# {name}"
        # Lines of a device's are paragraphs; lists in docstrings follow theirs without an empty line.
        text = found.text.replace("\n", "\n\n") if entry.path.suffix == ".yaml" else found.text
        yield text.replace(":\n- ", ":\n\n- ").replace("::", ":").replace("``", "`")
        if found.rows:
            yield table(found.heads, [(f"`{row[0]}`", *row[1:]) for row in found.rows])
        yield f"`{entry.path.relative_to(ROOT)}`"


def _files(kind: str) -> str:
    rows = [(f"`{name}`", catalogue.summary(entry)) for name, entry in catalogue.entries(kind).items()]
    return f"## {kind.capitalize()}\n\n{table(('name', 'what it is'), rows)}"


def _commands() -> Iterator[str]:
    yield "# Commands"
    group: Any = typer.main.get_command(app)
    for name, command in group.commands.items():
        yield f"## edgefl {name}"
        yield inspect.cleandoc(command.help or "")
        rows = [(_option(one), one.help or "") for one in command.params if one.name != "help"]
        yield table(("option", "meaning"), rows)
        yield inspect.cleandoc(command.epilog or "")


def _option(one: Any) -> str:
    names = [*one.opts, *one.secondary_opts] if one.param_type_name == "option" else [one.metavar]
    return f"`{', '.join(names)}`"


def _object(name: str) -> str:
    found = getattr(edgefl, name)
    return f"::: {found.__module__}.{found.__qualname__}"
