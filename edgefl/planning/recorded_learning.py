"""What a run learned from, as its directory has it: data, nets, methods and codecs, built again."""

from __future__ import annotations

from pathlib import Path

from edgefl.core.errors import DataError
from edgefl.core.scenario import LearningSpec
from edgefl.planning.learning import DataAccess, Learning, data_of, learn_from
from edgefl.store import Reader


def learning_of(reader: Reader, access: DataAccess) -> Learning:
    """The learning of a run, on the data that it had.

    Args:
        reader: the run.
        access: how to get at its dataset; without a folder, from where the run found it.

    Raises:
        UserError: the run is damaged, a component that it names is gone, or its data are gone or have
            changed.
    """
    resolved, access = reader.resolved(), _as_it_ran(reader, access)
    spec, document = LearningSpec.of_resolved(resolved["scenario"], f"{reader.folder.name}/plan.yaml")
    data = data_of(spec, document, access)
    if access.need == "pixels" and data.spec.content != resolved.get("data", ""):
        raise DataError(
            f"the images of {data.spec.name} have changed since the run",
            where=spec.task.dataset.params.get("path", ""),
            hint="restore the files as they were, or run the scenario again",
        )
    return learn_from(spec, document, data)


def _as_it_ran(reader: Reader, access: DataAccess) -> DataAccess:
    """The given access; if it names no folder, with the one that the run was given."""
    data_dir = reader.meta.get("data_dir")
    if access.folder is not None or not isinstance(data_dir, str) or not Path(data_dir).is_dir():
        return access
    return DataAccess(Path(data_dir), download=access.download, need=access.need)
