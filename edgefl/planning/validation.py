"""Predicted times and energies beside those measured on boards: errors, and rank correlations.

No row is held against numbers that were fitted to its network. Where a file says which of its board's numbers
were fitted to which rows (``fitted``), all rows of such a network on that board are predicted with these
numbers fitted again, to the other networks' rows that they were fitted to: leave one network out. Where a
number was fitted to one network alone, that network's rows are shown and not counted.

Networks are modules without weights, by library and name; some only a source of measurements defines.

``mnn-``: UbiquitousLearning/Benchmark-On-Device-Training at 752659f8, ``tools/train/source/models/``, in
operators of torch. A softmax that ends some of them is part of the loss here.

``cifar-``: yeeiia/Hardware-Course-Project at 053a6df, ``src/fedavg/models.py``: torchvision's networks with
stems for 32x32 pixels.
"""

import inspect
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from edgefl.compute.steps import forward_pass, training_step
from edgefl.core import catalogue
from edgefl.core.components import params_of
from edgefl.core.corners import at_corners, has_interval, known
from edgefl.core.cost import Work
from edgefl.core.devices import Board
from edgefl.core.devices.roofline import EfficiencyByClass
from edgefl.core.errors import UnknownNameError, UserError, in_one_line, nearest
from edgefl.core.notes import note
from edgefl.core.price import Demand, above_idle_between, times
from edgefl.core.sourced import changed, sourced
from edgefl.core.validation import validate
from edgefl.core.yamls import Document, text_of
from edgefl.planning.benchmarks import (
    ALL,
    FORWARD,
    INFERENCE,
    KIND,
    LAST_LAYER,
    POWER,
    QUANTITIES,
    Benchmark,
    BenchmarkComparison,
    BenchmarkRow,
    BenchmarkSource,
    Compared,
    Quantity,
    Score,
    Total,
    Validation,
    read,
)
from edgefl.protocol.vision import torchvision

Given = TypeVar("Given")
Made = TypeVar("Made")


class Sample(NamedTuple):
    """One measured time or energy, in seconds or joules, and the work that was measured."""

    file: Benchmark
    row: BenchmarkRow
    work: Work
    quantity: Quantity
    measured: float


Predict: TypeAlias = Callable[[Sample], Demand]


def validation(
    names: Sequence[str] = (),
    boards: Sequence[str] = (),
    progress: Callable[[str, int, int], None] | None = None,
) -> Validation:
    """Measurements beside predictions.

    Args:
        names: names or paths of files; by default all that the catalogue has, but for wrong ones and those
            whose board cannot be priced, which notes name.
        boards: only files about these devices; all by default.
        progress: is called with the file that comes next, how many are done, and of how many.

    Raises:
        UserError: a name is unknown, a file is wrong, or a board cannot be priced.
    """
    for board in boards:
        catalogue.find("devices", board, where="--device")
    strict, known_work = bool(names), dict[str, Work]()
    found = _each(read, names or catalogue.entries(KIND), strict=strict)
    sources = [source for source in found if not boards or source.benchmark.board in boards]
    if not sources:
        raise UserError(
            f"there are no measurements on {', '.join(boards)}" if boards else "there are no measurements",
            where="--device" if boards else "",
            hint="`edgefl list validation` lists all; docs/validation.md says how to add your own",
        )
    behind = _behind(sources) if names else []
    works: dict[str, list[Sample]] = {}
    judges: dict[str, _Judge] = {}

    def trace(source: BenchmarkSource) -> BenchmarkSource:
        if progress:
            progress(source.name, len(works), len(sources) + len(behind))
        own = works[source.document.file] = list(samples(source, known_work))
        judges.setdefault(source.benchmark.board, _Judge(source)).samples += own
        return source

    def compare(source: BenchmarkSource) -> list[BenchmarkComparison]:
        return list(_comparisons(source, works[source.document.file], judges[source.benchmark.board]))

    traced = _each(trace, sources, strict=strict)
    _each(trace, behind, strict=False)
    comparisons = tuple(one for group in _each(compare, traced, strict=strict) for one in group)
    return Validation(comparisons, tuple(_totals(comparisons)))


def _behind(chosen: Sequence[BenchmarkSource]) -> list[BenchmarkSource]:
    """The catalogue's other files that numbers of the chosen ones' boards were fitted to."""
    boards = {source.benchmark.board for source in chosen}
    files = {source.document.file for source in chosen}
    # Parsing a file takes a tenth of a second.
    names = [
        name
        for name, entry in catalogue.entries(KIND).items()
        if str(entry.path) not in files and any(board in text_of(entry.path) for board in boards)
    ]
    others = _each(read, names, strict=False)
    return [
        one
        for one in others
        if one.benchmark.board in boards and any(row.fitted for row in one.benchmark.rows)
    ]


def _each(make: Callable[[Given], Made], given: Iterable[Given], *, strict: bool) -> list[Made]:
    """What is made of each; where not ``strict``, a note names what a user's error leaves out."""
    made = []
    for one in given:
        try:
            made.append(make(one))
        except UserError as error:
            if strict:
                raise
            note(f"{getattr(one, 'name', one)} is left out: {error.what}; {error.where}".rstrip("; "))
    return made


def samples(source: BenchmarkSource, known_work: dict[str, Work]) -> Iterator[Sample]:
    """The samples of a file's rows; their work is added to what was traced before.

    Raises:
        UserError: a network is unknown, or cannot be traced; placed at the row.
    """
    file = source.benchmark
    for place, row in enumerate(file.rows):
        key = repr((row.key, row.batch, file.measures, file.optimizer))
        if key not in known_work:
            known_work[key] = _traced(source, place, row)
        for quantity, measured in zip(QUANTITIES, (row.time, row.energy), strict=True):
            if measured is not None:
                yield Sample(file, row, known_work[key], quantity, measured)


def _traced(source: BenchmarkSource, place: int, row: BenchmarkRow) -> Work:
    file, make = source.benchmark, maker(row, source.document, place)
    where = source.document.place(["rows", place])
    try:
        if file.measures in {FORWARD, INFERENCE}:
            return forward_pass(make, row.batch, row.image, fused=file.measures == INFERENCE)
        last = file.measures == LAST_LAYER
        return training_step(make, row.batch, row.image, file.optimizer, last_layer=last)
    except UserError as error:
        error.where = where
        raise
    except (RuntimeError, ValueError, NotImplementedError) as error:
        size = "x".join(map(str, row.image))
        what = f"{row.network} cannot be traced on {size}: {in_one_line(error)}"
        raise UserError(what, where=where) from error


class _Judge:
    """Predicts the samples of a board, each with numbers that were not fitted to its network."""

    def __init__(self, source: BenchmarkSource) -> None:
        self.samples: list[Sample] = []
        self._name, self._board = source.benchmark.board, source.board
        self._predict, self._again = _predictor(self._name, self._board), cache(self._refitted)
        corners = at_corners(self._board) if has_interval(self._board) else ()
        self._corners = [_predictor(self._name, corner) for corner in corners]

    def compared(self, sample: Sample) -> Compared:
        row = sample.row
        refusal = self._board.refusal(sample.work, sample.file.dtype)
        return Compared(
            network=row.label or row.network,
            batch=row.batch,
            measured=sample.measured,
            status=row.status,
            source=row.source,
            **({"remark": refusal} if refusal else self._prediction(sample)),
        )

    def _prediction(self, sample: Sample) -> dict[str, Any]:
        """What is predicted, its bounds, whether it counts and why not, by the fields of ``Compared``."""
        numbers, network = self._fitted_to(sample), sample.row.key
        others = (_fitted(one) for one in self._others(network, numbers))
        counted = numbers <= frozenset().union(*others)
        again = counted and bool(numbers)
        predict = self._again(network, numbers) if again else self._predict
        predicted = _figure(predict(sample), sample)
        low, high = (None, None) if again else self._between(sample)
        if predicted is None:
            counted, bounded = False, low is not None or high is not None
            remark = "a power is only bounded" if bounded else "a power is unknown"
        elif counted:
            remark = "refitted" if again else ""
        else:
            remark = f"not counted: {', '.join(sorted(numbers))} fitted to it"
        return {"predicted": predicted, "low": low, "high": high, "counted": counted, "remark": remark}

    def _fitted_to(self, sample: Sample) -> frozenset[str]:
        """The numbers behind a sample's prediction that were fitted to its network."""
        file, same = sample.file, (one for one in self.samples if one.row.key == sample.row.key)
        fitted = (_fitted(one) for one in same if sample.quantity in {one.quantity, "energy"})
        reads = cache(lambda name: self._board.reads(name, file.dtype, inference=file.measures == INFERENCE))
        numbers = frozenset[str]().union(*fitted)
        return frozenset(name for name in numbers if name.startswith(POWER) or reads(name))

    def _others(self, network: str, numbers: frozenset[str]) -> list[Sample]:
        """The samples of other networks that any of these numbers was fitted to."""
        return [one for one in self.samples if one.row.key != network and _fitted(one) & numbers]

    def _between(self, sample: Sample) -> tuple[float | None, float | None]:
        """The least and the most that the board's numbers allow; None where nothing bounds it."""
        low, high = [_bound(corner, sample) for corner in self._corners] or [None, None]
        if sample.quantity == "energy" and sample.file.energy_of == "above idle":
            if low and high:
                return above_idle_between(low, high)
            return None, known(high.working_j) if high else None
        return _figure(low, sample), _figure(high, sample)

    def _refitted(self, network: str, numbers: frozenset[str]) -> Predict:
        """Predicts with numbers fitted to the samples of other networks than one.

        By least squares of the logarithms of predicted over measured, from the present values on.
        """
        from scipy.optimize import least_squares

        others, names, present = self._others(network, numbers), sorted(numbers), dict(sourced(self._board))
        values = np.array([float(present[name].known) for name in names])

        def scaled(steps: Any) -> Predict:
            own = dict(zip(names, (values * np.exp(steps)).tolist(), strict=True))
            moved = {key: present[key].model_copy(update={"value": value}) for key, value in own.items()}
            return _predictor(self._name, changed(self._board, moved.get))

        def residuals(steps: Any) -> list[float]:
            predict = scaled(steps)
            figures = ((_figure(predict(one), one), one.measured) for one in others)
            return [math.log((found or measured) / measured) for found, measured in figures]

        # A share is the only number that has an upper limit, 1.
        shares = [name.rsplit(".", maxsplit=1)[-1] in EfficiencyByClass.model_fields for name in names]
        limits = np.where(shares, -np.log(values), math.inf)
        found = least_squares(residuals, np.zeros(len(names)), bounds=(-math.inf, limits), diff_step=1e-3)
        return scaled(found.x)


def _fitted(sample: Sample) -> frozenset[str]:
    return sample.row.fitted_for(sample.quantity)


def _predictor(name: str, board: Board) -> Predict:
    """Predicts samples on a board; remembers its clocks, and these their kernels' times."""
    clock = cache(lambda dtype, inference: board.clock(name, dtype, inference=inference))

    def predict(sample: Sample) -> Demand:
        timed = clock(sample.file.dtype, sample.file.measures == INFERENCE)
        return Demand.working(timed.time(sample.work), board.power)

    return predict


def _bound(predict: Predict, sample: Sample) -> Demand | None:
    try:
        return predict(sample)
    except UserError:  # a number without a bound on this side
        return None


def _figure(working: Demand | None, sample: Sample) -> float | None:
    """Its seconds or joules; None if they are unknown."""
    if working is None:
        return None
    if sample.quantity == "time":
        return float(working.work_s)
    of_work_j = times(working.compute_w, working.work_s)
    return known(of_work_j if sample.file.energy_of == "above idle" else working.working_j)


def _comparisons(
    source: BenchmarkSource, own: Sequence[Sample], judge: _Judge
) -> Iterator[BenchmarkComparison]:
    """A file's comparison of times, and the one of energies."""
    file = source.benchmark
    for quantity in QUANTITIES:
        rows = tuple(judge.compared(sample) for sample in own if sample.quantity == quantity)
        if rows:
            about = file.board, file.title, file.measures, quantity, file.runtime, file.source, file.notes
            yield BenchmarkComparison(source.name, *about, rows, Score.of(rows))


def _totals(comparisons: Sequence[BenchmarkComparison]) -> Iterator[Total]:
    """One for each kind of measurement, and one for all times."""
    groups: dict[tuple[str, Quantity], list[BenchmarkComparison]] = {}
    for one in comparisons:
        groups.setdefault((one.measures, one.quantity), []).append(one)
    if len({measures for measures, quantity in groups if quantity == "time"}) > 1:
        groups[ALL, "time"] = [one for one in comparisons if one.quantity == "time"]
    for (measures, quantity), group in groups.items():
        networks = {(one.board, row.network) for one in group for row in one.rows if row.counted}
        boards = len({board for board, _ in networks})
        score = Score.of([row for one in group for row in one.rows])
        yield Total(measures, quantity, len(group), boards, len(networks), score)


Make = Callable[[], nn.Module]

_POOL, _STRIDE = 3, 2
# Settings that these definitions need to be built without weights, and to return the logits alone.
_NEEDED: Mapping[str, Mapping[str, Any]] = {
    "googlenet": {"aux_logits": False, "init_weights": False},
    "inception_v3": {"aux_logits": False, "init_weights": False},
}


def maker(row: BenchmarkRow, document: Document, place: int) -> Make:
    """A function that makes the network of a document's row, as a module on torch's default device.

    Raises:
        UserError: the library has no such network, or its definition refuses the settings.
    """
    where = document.place(["rows", place, "network"])
    settings = row.settings
    if row.library == "edgefl":
        module = catalogue.load("models", row.network, where=where)
        params: Any = validate(params_of("models", module), settings, document, ["rows", place, "settings"])
        net = partial(params.build, row.image, row.classes)
        return lambda: (built := net()).module(built.init(0))
    found = _torchvisions() if row.library == "torchvision" else _PUBLISHED
    if row.network not in found:
        what = f"{row.library} has no network {row.network!r}"
        raise UnknownNameError(what, where=where, hint=nearest(row.network, found))
    build = found[row.network]
    if row.library == "published":
        if settings:
            raise UserError(f"{row.network!r} has no settings", where=where)
        return partial(build, row.image[0], row.classes)
    if "weights" in settings:
        raise UserError("networks are built without weights: leave out 'weights'", where=where)
    settings = {**_NEEDED.get(row.network, {}), **settings, "num_classes": row.classes}

    def make() -> nn.Module:
        try:
            return build(**settings)
        except (TypeError, ValueError) as error:
            what = f"torchvision's {row.network!r} refuses these settings: {in_one_line(error)}"
            raise UserError(what, where=where) from error

    return make


def _torchvisions() -> dict[str, Callable[..., nn.Module]]:
    """By name: its functions, then its classes."""
    models = torchvision().models
    classes = {name: one for name, one in vars(models).items() if inspect.isclass(one)}
    builders = {name: models.get_model_builder(name) for name in models.list_models(module=models)}
    return builders | {name: one for name, one in classes.items() if issubclass(one, nn.Module)}


def _mnn_lenet(channels: int, classes: int) -> nn.Module:
    """LeNet for 28x28 pixels; no activation follows a convolution.

    There, the second convolution is not registered, so that its weights are not trained; here they are.
    """
    return nn.Sequential(
        nn.Conv2d(channels, 20, 5),
        nn.MaxPool2d(2),
        nn.Conv2d(20, 50, 5),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(800, 400),
        nn.ReLU(),
        nn.Dropout(0.5),
        nn.Linear(400, classes),
    )


def _mnn_alexnet(channels: int, classes: int) -> nn.Module:
    """AlexNet for 224x224 pixels in one tower, with one hidden layer."""
    widths = ((96, 256, 5), (256, 384, 3), (384, 384, 3), (384, 256, 3))
    second, third, fourth, fifth = (
        nn.Conv2d(inputs, outputs, side, padding=side // 2) for inputs, outputs, side in widths
    )
    return nn.Sequential(
        *(nn.Conv2d(channels, 96, 11, stride=4), nn.ReLU(), nn.MaxPool2d(_POOL, _STRIDE)),
        *(second, nn.ReLU(), nn.MaxPool2d(_POOL, _STRIDE)),
        *(third, nn.ReLU(), fourth, nn.ReLU(), fifth, nn.MaxPool2d(_POOL, _STRIDE)),
        *(nn.Flatten(), nn.Linear(256 * 5 * 5, 4096), nn.ReLU(), nn.Dropout(0.5), nn.ReLU()),
        *(nn.Dropout(0.5), nn.Linear(4096, classes)),
    )


class _Joined(nn.Module):
    """Branches of one input, their channels side by side."""

    def __init__(self, *branches: nn.Module) -> None:
        super().__init__()
        self.branches = nn.ModuleList(branches)

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([branch(x) for branch in self.branches], dim=1)


def _halved() -> nn.Module:
    return nn.MaxPool2d(_POOL, _STRIDE, padding=1)


def _inception(
    inputs: int, one: int, less3: int, three: int, less5: int, five: int, pooled: int
) -> nn.Module:
    """Four branches without normalisation or activation."""
    return _Joined(
        nn.Conv2d(inputs, one, 1),
        nn.Sequential(nn.Conv2d(inputs, less3, 1), nn.Conv2d(less3, three, 3, padding=1)),
        nn.Sequential(nn.Conv2d(inputs, less5, 1), nn.Conv2d(less5, five, 5, padding=2)),
        nn.Sequential(nn.MaxPool2d(_POOL, 1, padding=1), nn.Conv2d(inputs, pooled, 1)),
    )


def _mnn_googlenet(channels: int, classes: int) -> nn.Module:
    """GoogLeNet for 224x224 pixels, without normalisation, activations and auxiliary classifiers."""
    return nn.Sequential(
        *(nn.Conv2d(channels, 64, 7, stride=2, padding=3), _halved()),
        *(nn.Conv2d(64, 192, 3, padding=1), _halved()),
        _inception(192, 64, 96, 128, 16, 32, 32),
        _inception(256, 128, 128, 192, 32, 96, 64),
        _halved(),
        _inception(480, 192, 96, 208, 16, 48, 64),
        _inception(512, 160, 112, 224, 24, 64, 64),
        _inception(512, 128, 128, 256, 24, 64, 64),
        _inception(512, 112, 144, 288, 32, 64, 64),
        _inception(528, 256, 160, 320, 32, 128, 128),
        _halved(),
        _inception(832, 256, 160, 320, 32, 128, 128),
        _inception(832, 384, 192, 384, 48, 128, 128),
        *(nn.AvgPool2d(7), nn.Conv2d(1024, classes, 1), nn.Flatten()),
    )


def _fire(inputs: int, squeezed: int, expanded: int) -> nn.Module:
    """A fire module without activations."""
    three = nn.Conv2d(squeezed, expanded, 3, padding=1)
    return nn.Sequential(nn.Conv2d(inputs, squeezed, 1), _Joined(nn.Conv2d(squeezed, expanded, 1), three))


def _mnn_squeezenet(channels: int, classes: int) -> nn.Module:
    """SqueezeNet 1.0 for 224x224 pixels, without activations."""
    return nn.Sequential(
        *(nn.Conv2d(channels, 96, 7, stride=2, padding=3), _halved()),
        *(_fire(96, 16, 64), _fire(128, 16, 64), _fire(128, 32, 128), _halved()),
        *(_fire(256, 32, 128), _fire(256, 48, 192), _fire(384, 48, 192), _fire(384, 64, 256), _halved()),
        *(_fire(512, 64, 256), nn.Conv2d(512, classes, 1), nn.AvgPool2d(14), nn.Flatten()),
    )


def _cifar_squeezenet(channels: int, classes: int) -> nn.Module:
    network: nn.Module = torchvision().models.squeezenet1_0(num_classes=classes)
    features = network.get_submodule("features")
    features.register_module("0", nn.Conv2d(channels, 96, 3, padding=1))
    features.register_module("2", nn.MaxPool2d(3, stride=1, padding=1))
    return network


def _cifar_mobilenet_v3_small(channels: int, classes: int) -> nn.Module:
    network: nn.Module = torchvision().models.mobilenet_v3_small(num_classes=classes)
    stem = nn.Conv2d(channels, 16, 3, padding=1, bias=False)
    network.get_submodule("features.0").register_module("0", stem)
    return network


# By name: (channels, classes) -> the network.
_PUBLISHED: Mapping[str, Callable[..., nn.Module]] = {
    "mnn-lenet": _mnn_lenet,
    "mnn-alexnet": _mnn_alexnet,
    "mnn-googlenet": _mnn_googlenet,
    "mnn-squeezenet": _mnn_squeezenet,
    "cifar-squeezenet": _cifar_squeezenet,
    "cifar-mobilenet-v3-small": _cifar_mobilenet_v3_small,
}
