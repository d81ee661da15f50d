"""ONNX files that edgefl did not write, or that were damaged: a result or one message, nothing else."""

import json
from contextlib import suppress

import numpy as np
import onnx
import pytest
from commands import run_command
from graphs import FLOAT, floats, write
from nightly import sampled
from onnx import TensorProto, helper, numpy_helper
from PIL import Image

from edgefl.core.documents import document
from edgefl.core.errors import EdgeflError, UserError
from edgefl.core.host import cores
from edgefl.export import bench as benching
from edgefl.export.bench import BenchOptions, bench
from edgefl.export.infer import infer

FACTS = {"class_names": ["a", "b", "c"], "shape": [1, 4, 4], "mean": [0.5], "std": [0.25]}
LINEAR = [("Flatten", ["x"], ["f"]), ("Gemm", ["f", "w"], ["y"])]
WEIGHTS = {"w": floats(16, 3)}
IMAGES = ["batch", 1, 4, 4]


def here(function, *arguments, threads):
    """Calls in this process: faster than in a fresh one."""
    assert threads == 1
    return function(*arguments)


def predicted(path):
    return bench(path, BenchOptions(threads=(), devices=("raspberry-pi-4b", "phone-mid")))


def measured(path):
    return bench(path, BenchOptions(threads=(1,), runs=1, budget_s=0.01), call=here)


@pytest.fixture
def image(tmp_path):
    """A grey image of the size that the models take."""
    Image.new("L", (4, 4), 100).save(tmp_path / "image.png")
    return tmp_path / "image.png"


def survives(path, image, *, measure=True):
    """Every command ends with a JSON document or an error of edgefl's own; returns how many results."""
    done = 0
    commands = [predicted, lambda file: infer(file, [image]), *([measured] if measure else [])]
    for command in commands:
        try:
            json.dumps(document(command(path)), allow_nan=False)
            done += 1
        except EdgeflError as error:
            assert str(error).strip()  # noqa: PT017 - either end is right
    return done


def saved(path, nodes, inputs, outputs, weights=(), opset=20):
    """A file of a graph as given, with metadata."""
    graph = helper.make_graph(nodes, "g", inputs, outputs, list(weights))
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)
    # An output without a shape is refused for that alone.
    with suppress(RuntimeError):
        model = onnx.shape_inference.infer_shapes(model)
    for key, value in FACTS.items():
        entry = model.metadata_props.add()
        entry.key, entry.value = f"edgefl.{key}", json.dumps(value)
    path.write_bytes(model.SerializeToString())
    return path


X, Y = helper.make_tensor_value_info("x", FLOAT, IMAGES), helper.make_tensor_value_info("y", FLOAT, None)


def node(op, inputs, **attributes):
    return helper.make_node(op, inputs, ["y"], **attributes)


def test_a_graph_without_work(tmp_path, image):
    """No operator takes time: no rate, rather than a division by zero."""
    path = write(tmp_path / "m.onnx", [("Flatten", ["x"], ["y"])], {}, IMAGES, facts=FACTS)
    price = predicted(path).devices[0].price
    assert (price.seconds, price.images_per_s) == (0, None)
    assert survives(path, image) == 2


CAST = [("Cast", ["x"], ["c"], {"to": FLOAT}), ("Flatten", ["c"], ["f"]), ("Gemm", ["f", "w"], ["y"])]


VALUES = [None, "x", [], {}, [None], ["a"], [0.0], [float("nan")], [0.5, 0.5], 0.5, -1, [[0.5]], "[" * 9999]
VALUES += [
    [1, 4, 4.5],
    [0, 4, 4],
    [-1, 4, 4],
    [1, 2**40, 2**40],
    [1, 65535, 65535],
    [2, 4, 4],
    ["1", "4", "4"],
]
# Of those, what is valid.
VALID = [("mean", [0.0]), ("class_names", ["1", "4", "4"])]


@sampled(2, "key", ["mean", "std", "shape", "class_names", "run_id", "client"])
def test_metadata_of_other_types(tmp_path, image, key):
    for value in VALUES:
        path = write(tmp_path / "m.onnx", CAST, WEIGHTS, IMAGES, facts=FACTS | {key: value})
        survives(path, image, measure=False)
        if key in FACTS and (key, value) not in VALID:
            with pytest.raises(UserError, match="metadata"):
                infer(path, [image])


def test_a_wrong_number_of_metadata_is_told_as_it_is(tmp_path, image):
    path = write(tmp_path / "m.onnx", CAST, WEIGHTS, IMAGES, facts=FACTS | {"mean": [float("nan")]})
    with pytest.raises(UserError, match=r"mean\.0 should be a finite number; got nan"):
        infer(path, [image])


def test_calls_larger_than_memory(tmp_path, monkeypatch):
    """Refused before anything is allocated, operators' results as well as inputs; predictions work."""
    for sides in ((2**20, 2**20), (2**62, 2**62)):
        path = write(tmp_path / "m.onnx", [("Relu", ["x"], ["y"])], {}, ["batch", *sides])
        with pytest.raises(UserError, match=r"a call of the model needs .* this host has"):
            measured(path)
        assert predicted(path).devices[0].fits is False
    big = {"s": np.array([1, 2**12, 2**12, 2**12])}
    nodes = [("Expand", ["x", "s"], ["e"]), ("ReduceMean", ["e"], ["y"], {"keepdims": 0})]
    path = write(tmp_path / "m.onnx", nodes, big, ["batch", 1, 1, 1])
    monkeypatch.setattr(benching.psutil, "virtual_memory", lambda: type("Memory", (), {"available": 2**37}))
    with pytest.raises(UserError, match="a call of the model needs"):
        measured(path)


def graphs():
    """Graphs that are valid, odd, or neither."""

    def of(name, *sides):
        return helper.make_tensor_value_info(name, FLOAT, sides)

    def weight(value, name="w"):
        return numpy_helper.from_array(np.asarray(value), name)

    optional = helper.make_optional_type_proto(helper.make_tensor_type_proto(FLOAT, ["batch", 4]))
    rows = weight(np.array([-1, 16]), "s")
    t = helper.make_tensor_value_info("t", FLOAT, None)
    inner = helper.make_graph([helper.make_node("Identity", ["x"], ["t"])], "t", [], [t])
    true = [
        helper.make_node("ReduceMax", ["x"], ["m"], keepdims=0),
        helper.make_node("Cast", ["m"], ["c"], to=TensorProto.BOOL),
    ]
    product = [helper.make_node("Reshape", ["x", "s"], ["f"]), node("MatMul", ["f", "w"])]
    linear = [helper.make_node("Flatten", ["x"], ["f"]), node("Gemm", ["f", "w"])]
    outside = weight(floats(16, 3))
    outside.data_location = TensorProto.EXTERNAL
    outside.ClearField("raw_data")
    entry = outside.external_data.add()
    entry.key, entry.value = "location", "../../etc/passwd"
    return {
        "nothing to do": ([], [X], [X]),
        "no outputs": ([node("Relu", ["x"])], [X], []),
        "no inputs": ([node("Constant", [], value=weight(floats(1, 3)))], [], [Y]),
        "two inputs": ([node("Add", ["x", "z"])], [X, of("z", *IMAGES)], [Y]),
        "an input without a type": ([node("Relu", ["x"])], [onnx.ValueInfoProto(name="x")], [Y]),
        "an optional": ([node("OptionalGetElement", ["x"])], [helper.make_value_info("x", optional)], [Y]),
        "an unnamed axis": ([node("Relu", ["x"])], [of("x", "batch", None)], [Y]),
        "a branch": ([*true, node("If", ["c"], then_branch=inner, else_branch=inner)], [X], [Y]),
        "a shape that depends on values": (
            [helper.make_node("NonZero", ["x"], ["z"]), node("Cast", ["z"], to=FLOAT)], [X], [Y]
        ),
        "shapes that do not fit": ([node("Gemm", ["x", "w"])], [X], [of("y", None)], [weight(floats(4, 3))]),
        "a product with a vector": (product, [X], [Y], [weight(floats(16)), rows]),
        "a product with nothing": (product, [X], [Y], [weight(floats(16, 0)), rows]),
        "no groups": ([node("Conv", ["x", "w"], group=0)], [X], [Y], [weight(floats(3, 1, 2, 2))]),
        "weights outside the folder": (linear, [X], [Y], [outside]),
        "a weight without values": (
            linear, [X], [Y], [onnx.TensorProto(name="w", data_type=FLOAT, dims=[2**40, 2**20])]
        ),
    }  # fmt: skip


# How many commands give a result; none of the others.
RESULTS = {
    **dict.fromkeys(
        ("nothing to do", "no inputs", "two inputs", "a product with a vector", "a product with nothing"), 2
    ),
    "no outputs": 1,
}


@pytest.mark.parametrize("name", graphs())
def test_odd_graphs(tmp_path, image, name):
    """What can be priced is priced, what can be run is measured; nothing is a classifier."""
    assert survives(saved(tmp_path / "m.onnx", *graphs()[name]), image) == RESULTS.get(name, 0)


def test_flipped_bytes(tmp_path, image):
    nodes = [("Conv", ["x", "k"], ["c"]), ("Relu", ["c"], ["r"]), ("Flatten", ["r"], ["f"])]
    weights = {"k": floats(2, 1, 3, 3), "w": floats(8, 3)}
    path = tmp_path / "m.onnx"
    write(path, [*nodes, ("Gemm", ["f", "w"], ["y"])], weights, IMAGES, facts=FACTS)
    whole, rng = path.read_bytes(), np.random.default_rng(0)
    results = []
    for case in range(150):
        damaged = bytearray(whole)
        for place in rng.integers(len(whole), size=rng.integers(1, 4)):
            damaged[place] = rng.integers(256)
        path.write_bytes(damaged[: rng.integers(len(whole))] if case % 10 == 0 else damaged)
        results.append(survives(path, image, measure=False))
    # Some damage is in weights or names, most is found.
    assert {0, 1, 2} == set(results)


def test_threads_without_cores(tmp_path, capsys):
    path = write(tmp_path / "m.onnx", LINEAR, WEIGHTS, IMAGES)
    status, _, err = run_command(capsys, "bench", path, "--threads", "1000000")
    assert (status, f"use at most {cores()}" in err) == (2, True)
