"""A run's learning, built again of what its directory has: data, nets, methods and codecs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from edgefl.core.errors import DataError
from edgefl.core.plan import Ints
from edgefl.core.scenario import LABELS, LearningSpec, Task
from edgefl.data import Federation, Spec, public_images, sized
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


def federation_of(reader: Reader, task: Task) -> Federation:
    """What is known of a run's data without their files, which need not be there any more.

    The numbers of samples, all in all and by class as far as the run has them; images and labels there are
    none, and public images are zeros.

    Args:
        reader: the run.
        task: its settings.

    Raises:
        UserError: the run is damaged.
    """
    resolved, spec = reader.resolved(), Spec.of_plain(reader.meta["data"])
    rows = reader.arrays(
        "SELECT samples, test_samples FROM fleet JOIN kinds USING (kind) ORDER BY client",
        samples=np.int64,
        test_samples=np.int64,
    )
    tests = rows["test_samples"].tolist()
    public = None
    if task.public is not None:
        public = public_images(spec, None, np.zeros(task.public.samples, dtype=np.int64))
    return replace(
        sized(spec, rows["samples"]),
        test_parts=tuple(np.zeros(count, dtype=np.int64) for count in tests) if any(tests) else (),
        class_counts=_class_counts(reader, len(tests), spec.classes),
        assumed=LABELS in resolved["scenario"]["task"],
        public_x=public,
        public_content=resolved.get("public_data", ""),
    )


def _class_counts(reader: Reader, clients: int, classes: int) -> Ints:
    """Training samples of each client and class, (clients, classes); empty where the run does not say."""
    rows = reader.arrays(
        "SELECT client, label, samples FROM class_counts", client=np.int64, label=np.int64, samples=np.int64
    )
    counts = np.zeros((clients if len(rows["client"]) else 0, classes), dtype=np.int64)
    counts[rows["client"], rows["label"]] = rows["samples"]
    return counts
