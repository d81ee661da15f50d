"""Those who are told of runs: several callbacks as one, and experiment trackers, which no run fails for."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias

from edgefl.core.components import component
from edgefl.core.errors import EdgeflError, RunError, UserError, in_one_line, quoted
from edgefl.core.notes import LOG
from edgefl.core.overrides import put
from edgefl.core.user_code import explained, returned, user_code
from edgefl.core.yamls import Document
from edgefl.trackers import Callbacks

Trackers: TypeAlias = str | Mapping[str, Any] | Sequence[str | Mapping[str, Any] | Document]
"""A tracker, or several: by name, or as mappings with a name and parameters."""


class Several(Callbacks):
    """Calls callbacks and trackers; the first error of a tracker is noted and turns it off."""

    def __init__(self, *each: Callbacks, trackers: Sequence[tuple[str, Callbacks]] = ()) -> None:
        self._each, self._trackers = each, list(trackers)
        for hook in ("began", "told", "ended"):
            setattr(self, hook, partial(self._call, hook))

    def _call(self, hook: str, given: Any) -> None:
        for one in self._each:
            getattr(one, hook)(given)
        for name, tracker in self._trackers.copy():
            try:
                getattr(tracker, hook)(given)
            except Exception as error:  # noqa: BLE001 - whatever it is, the runs go on
                self._trackers.remove((name, tracker))
                told = error if isinstance(error, EdgeflError) else explained(error, RunError)
                what = in_one_line(error) if told is None else told.what
                where = f" ({told.where})" if told and told.where else ""
                LOG.warning(f"{given.name}: the tracker {name} failed and was turned off: {what}{where}")


@user_code()
def trackers_of(trackers: Trackers) -> list[tuple[str, Callbacks]]:
    """The trackers that are asked for, by name, ready to be used.

    Raises:
        UserError: one is unknown, a parameter is wrong, or it refuses: a package is not installed, say.
    """
    given = [trackers] if isinstance(trackers, str | Mapping) else trackers
    if not isinstance(given, Sequence):
        raise UserError(f"trackers must be a name, a mapping or a list of those; got {quoted(given)}")
    return [
        _built(each if isinstance(each, Document) else Document.of(each, f"trackers[{place}]"))
        for place, each in enumerate(given)
    ]


def _built(tracker: Document) -> tuple[str, Callbacks]:
    asked = put(Document(tracker.file, {}), ["tracker"], tracker)
    params = component("trackers", tracker.data, asked, ["tracker"])
    name = params.name
    try:
        built = params.build()
    except UserError as error:
        raise UserError(
            f"{name}: {error.what}", where=error.where or tracker.file, hint=error.hint
        ) from error
    expected = "an object of a subclass of edgefl.Callbacks"
    return name, returned(built, Callbacks, params.build, expected)
