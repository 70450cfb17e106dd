"""Errors for JavaScript values under Pyodide say how to convert them."""

from support.browser.in_pyodide import in_pyodide


@in_pyodide
def test_javascript_values_are_told_to_be_converted():
    import emberlet
    from emberlet import functional as F
    from emberlet import onnxruntime
    from emberlet.errors import DTypeError, EmberletError
    from emberlet.model import Model
    from emberlet.wgpu_backend.plan.port import Port
    from emberlet.wgpu_backend.plan.ports import Ported
    from pyodide.code import run_js

    class Double(Model):
        INPUTS = (("x", "float32", (4,)),)
        OUTPUTS = (("y", "float32", (4,)),)

        def forward(self, x):
            return x * 2.0

    class NodeArg:
        name, type = "x", "tensor(float)"

    saved = Ported()
    saved.origin, saved.counts, saved.inputs = "saved.plan", None, [Port("x", emberlet.float32, (4,), 0)]
    session = onnxruntime.InferenceSession.__new__(onnxruntime.InferenceSession)
    session._backend = None

    def runs(value):
        yield lambda: emberlet.asarray(value)
        yield lambda: F.relu(value)
        yield lambda: Double()(value)
        yield lambda: saved.words([value])
        yield lambda: session._value(NodeArg, value)

    for value in run_js("[Float32Array.of(1, 2, 3, 4), [1, 2, 3, 4]]"):
        for at, run in enumerate(runs(value)):
            try:
                run()
            except EmberletError as error:
                assert ".to_py()" in str(error), (at, error)
                assert isinstance(error, DTypeError) or at == 3, (at, type(error))
            else:
                raise AssertionError(at)
        converted = emberlet.asarray(value.to_py(), dtype="float32")
        assert Double()(converted).tolist() == [2.0, 4.0, 6.0, 8.0]
