"""What commands answer, in hand: a document, and tables that a terminal and a notebook show alike."""

import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TextIO, TypeAlias, TypeVar

from rich.console import Console, Group, RenderableType

from edgefl.core.documents import document
from edgefl.core.errors import EdgeflError

# Off a terminal.
WIDTH = 100

Steps: TypeAlias = Callable[[str, int, int], None]
"""Called with what is done next, how many steps are done, and how many there are."""


def quiet(label: str, done: int, total: int) -> None:
    """Tells nobody."""


def several(given: Any) -> list[Any]:
    """An argument of which there may be one, several or, as None, none."""
    many = isinstance(given, Iterable) and not isinstance(given, str | Mapping)
    return [] if given is None else list(given) if many else [given]


def plain_console(**given: Any) -> Console:
    """A console that prints texts as they are."""
    return Console(highlight=False, markup=False, emoji=False, **given)


class Shown:
    """What is shown as tables.

    Attributes:
        lines: what is said below them, such as where files are.
        notes: what is worth knowing beside them.
        errors: what failed, though nothing was wrong with the question.
        plain: writes a text that is printed in the tables' place; None for none.
        exit_status: the command's, unless an error has a higher one.
    """

    lines: Sequence[str] = ()
    notes: Sequence[str] = ()
    errors: Sequence[EdgeflError] = ()
    plain: Callable[[TextIO], object] | None = None
    exit_status: int = 0

    def __rich__(self) -> RenderableType:
        raise NotImplementedError

    @property
    def document(self) -> Any:
        """Plain data: what the command prints with ``--json``."""
        return document(self)

    @property
    def text(self) -> str:
        """What the command prints, tables in lines of 100 columns."""
        stream = io.StringIO(newline="")
        if self.plain is not None:
            self.plain(stream)
        else:
            self.show(plain_console(file=stream, width=WIDTH))
        return stream.getvalue()

    def show(self, at: Console) -> None:
        """Prints the tables, and the lines below them."""
        # A line that is not to be wrapped goes on.
        at.print(self, crop=False)
        for line in self.lines:
            at.print(line, soft_wrap=True)

    def _repr_html_(self) -> str:
        # The command line has no use for them.
        from edgefl.show.formats import notebook_html
        from edgefl.show.table import Line

        notes = (Line(f"note: {note}", "yellow") for note in self.notes)
        failed = (Line(str(error), "red") for error in self.errors)
        return notebook_html(Group(self, *map(Line, self.lines), *notes, *failed))


@dataclass(frozen=True, repr=False)
class Answer(Shown):
    """What a command answers.

    Attributes:
        title: the command, and what it was asked about.
        records: what was found; of what is shown elsewhere too, that.
        view: the same as tables.
    """

    title: str
    records: Any
    view: RenderableType = field(default_factory=Group)
    lines: Sequence[str] = ()
    notes: Sequence[str] = ()
    errors: Sequence[EdgeflError] = ()
    plain: Callable[[TextIO], object] | None = None
    exit_status: int = 0

    def __repr__(self) -> str:
        return f"Answer({self.title!r})"

    def __rich__(self) -> RenderableType:
        return self.view

    @cached_property
    def document(self) -> Any:
        found = self.records
        return found.document if isinstance(found, Shown) else document(found)


Given = TypeVar("Given", bound=Shown)


def unless(mistakes: Sequence[EdgeflError], answer: Given) -> Given:
    """The answer, if there was no mistake.

    Raises:
        EdgeflError: the worst of the mistakes, with the others and the answer.
    """
    if not mistakes:
        return answer
    worst = max(mistakes, key=lambda one: one.exit_status)
    every = [each for one in mistakes for each in (one, *one.others)]
    worst.others = tuple(one for one in every if one is not worst)
    worst.answer = answer
    raise worst
