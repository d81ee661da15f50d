"""Every shipped model, and every kind of method, exports to ONNX that computes what PyTorch does."""

import onnx
import onnxruntime as ort
import pytest
import torch
from builders import build_net
from exported import MODELS, exported, images, spec, worked
from nightly import mostly, sampled

from edgefl.compute.onnx_exporter import OPSET
from edgefl.compute.onnx_runtime import session
from edgefl.compute.process import one_thread
from edgefl.export.compact import to_fp16, to_int8
from edgefl.export.graph import ExportError, Served, check, to_onnx
from edgefl.export.model import ExportForm
from edgefl.export.verify import BATCHES, parity, runner

pytestmark = pytest.mark.usefixtures("one_registry", "as_engines_work")

SHAPE = (3, 8, 8)


# By day one of each kind that is quick: fully connected, convolutional, normalised.
BY_DAY = ("mlp", "fedcka-cnn", "spherefed-convnet")
OWN = {"mlp": "fedclassavg", "fedcka-cnn": "spherefed", "resnet18": "spherefed"}
PAIRS = mostly(*([(name, OWN.get(name, "fedavg")) for name in names] for names in (MODELS, BY_DAY)))


@sampled(1, ("name", "method"), PAIRS)
def test_a_model_is_verified(name, method):
    """Logits within the tolerances in batches of 1, 2, 7 and 64, and the same class for every sample."""
    module, model = exported(name, method)
    x, y = images(MODELS[name][0])
    found = parity(model, module, ExportForm(), x, y)
    assert found.passed, str(found)
    assert found.accuracy == found.torch_accuracy
    graph = onnx.load_from_string(model).graph
    products = [node.op_type for node in graph.node if node.op_type in {"Conv", "Gemm", "MatMul"}]
    assert products[-1] == "Gemm"
    # A head on the sphere is told by its norm.
    assert ("ReduceL2" in {node.op_type for node in graph.node}) == (method == "spherefed")


@pytest.fixture(
    scope="module",
    params=mostly([ExportForm(a, not a) for a in (False, True)], [ExportForm(True, False)]),
    ids=str,
)
def variant(request):
    """The batch-normalised ConvNet in every form: its form, module and file."""
    form = request.param
    with one_thread():
        net = build_net("spherefed-convnet", SHAPE, norm="batch")
        module = Served(worked("fedavg", net), spec(SHAPE), form).eval()
        return (
            form,
            module,
            to_onnx(module, SHAPE, form, {"class_names": ["a", "b"], "note": "text", "round": 3}),
        )


def given(form, count=64):
    x, y = images(SHAPE, count)
    made = spec(SHAPE)
    mean, std = (torch.tensor(values).view(1, -1, 1, 1) for values in (made.mean, made.std))
    return ((x.float() / 255 - mean) / std if form.raw_input else x), y


def test_names_types_and_outputs(variant):
    """uint8 "image" or float32 "pixels" goes in; logits come out, and on request probabilities."""
    form, module, model = variant
    running = session(model)
    (taken,) = running.get_inputs()
    assert (taken.name, taken.type) == (
        ("pixels", "tensor(float)") if form.raw_input else ("image", "tensor(uint8)")
    )
    assert taken.shape == ["batch", *SHAPE]
    names = ["logits", "probabilities"] if form.softmax else ["logits"]
    assert [one.name for one in running.get_outputs()] == names
    x, y = given(form)
    assert parity(model, module, form, x, y).passed
    if form.softmax:
        logits, probabilities = running.run(None, {taken.name: x.numpy()})
        expected = torch.from_numpy(logits).softmax(dim=1)
        torch.testing.assert_close(torch.from_numpy(probabilities), expected, rtol=1e-5, atol=1e-6)


def test_the_file_is_valid_at_its_opset(variant):
    form, _, model = variant
    proto = onnx.load_from_string(model)
    check(proto, form)
    assert [(one.domain, one.version) for one in proto.opset_import] == [("", OPSET)]
    proto.opset_import[0].version = OPSET - 1
    with pytest.raises(ExportError, match=f"opset {OPSET - 1}"):
        check(proto, form)
    with pytest.raises(ExportError, match="named"):
        check(onnx.load_from_string(model), ExportForm(not form.raw_input, form.softmax))
    fixed = onnx.load_from_string(model)
    fixed.graph.input[0].type.tensor_type.shape.dim[0].dim_value = 4
    with pytest.raises(ExportError, match=r"fixes how many images|not valid"):
        check(fixed, form)


@pytest.mark.nightly
def test_training_mode_never_leaks(variant):
    """Exported in training mode, the file holds evaluation mode: running statistics, whatever the batch."""
    form, module, model = variant
    x, _ = given(form)
    module.train()
    try:
        again = to_onnx(module, SHAPE, form, {})
    finally:
        module.eval()
    run = runner(again, form)
    together = run(x)
    for size in BATCHES:
        # Batch statistics would tie a sample's logits to its neighbours.
        torch.testing.assert_close(
            torch.from_numpy(run(x[:size])), torch.from_numpy(together[:size]), rtol=1e-4, atol=1e-5
        )
    torch.testing.assert_close(torch.from_numpy(runner(model, form)(x)), torch.from_numpy(together))


@sampled(1, ("name", "method"), PAIRS)
def test_every_model_has_smaller_files(name, method, tmp_path):
    """Float16 gives float32's classes; int8 runs in integers, but for a layer that SphereFed scales after."""
    form, (_, model) = ExportForm(), exported(name, method)
    x, _ = images(MODELS[name][0])
    classes = runner(model, form)(x).argmax(axis=1)
    half = runner(to_fp16(model, form, {}), form)(x).argmax(axis=1)
    assert (classes == half).mean() > 0.95
    quantised = to_int8(model, form, x, {})
    tensors = onnx.load_from_string(quantised).graph.initializer
    kinds = {one.data_type for one in tensors if len(one.dims) > 1 and "weight" in one.name}
    assert kinds == {onnx.TensorProto.INT8}
    # One for each class, of the head.
    assert [10] in [list(one.dims) for one in tensors if one.name.endswith("_scale")]
    options = ort.SessionOptions()
    options.optimized_model_filepath = str(tmp_path / "optimised.onnx")
    options.log_severity_level = 3
    ort.InferenceSession(quantised, options, providers=["CPUExecutionProvider"])
    found = [node.op_type for node in onnx.load(tmp_path / "optimised.onnx").graph.node]
    in_floats = [op for op in found if op in {"Gemm", "FusedGemm", "MatMul"}]
    assert len(in_floats) == ((name, method) == ("fedcka-cnn", "spherefed"))
    plain = ort.SessionOptions()
    plain.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    given = {form.input: x.numpy()}
    joined, apart = (
        ort.InferenceSession(quantised, one, providers=["CPUExecutionProvider"]).run(None, given)[0]
        for one in (options, plain)
    )
    # Integers that overflowed would be far off; a sum that rounds to the other side is a step of the scale.
    assert (joined.argmax(axis=1) == apart.argmax(axis=1)).mean() > 0.95
