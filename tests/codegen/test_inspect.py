"""`inspect` prints the typed IR; every operator has a family."""

from __future__ import annotations

import numpy as np
from emberlet.codegen import inspect
from emberlet.codegen.ops import OPERATORS
from onnx import numpy_helper
from support.onnx_models import parse


def test_a_convolution_is_printed_with_its_arguments_types_and_config() -> None:
    model = parse(
        """g (float[2, 4, 10, 15] input) => (float[2, 6, 6, 15] out) {
            [conv2d1] out = Conv<kernel_shape = [3, 5], strides = [2, 1], pads = [4, 2, 4, 2], dilations = [3, 1],
                                 group = 2>(input, weight)
        }"""
    )
    model.graph.initializer.append(numpy_helper.from_array(np.zeros((6, 2, 3, 5), np.float32), "weight"))
    assert (
        inspect(model)
        == """\
Graph {
    nodes: [
        Conv {
            name: 'conv2d1',
            inputs: [
                Argument {
                    name: 'input',
                    type: Tensor {
                        dtype: float32,
                        rank: 4,
                        shape: (2, 4, 10, 15),
                        static_shape: (2, 4, 10, 15),
                    },
                    value_source: Dynamic,
                },
                Argument {
                    name: 'weight',
                    type: Tensor {
                        dtype: float32,
                        rank: 4,
                        shape: (6, 2, 3, 5),
                        static_shape: (6, 2, 3, 5),
                    },
                    value_source: Static,
                },
            ],
            outputs: [
                Argument {
                    name: 'out',
                    type: Tensor {
                        dtype: float32,
                        rank: 4,
                        shape: (2, 6, 6, 15),
                        static_shape: (2, 6, 6, 15),
                    },
                    value_source: Dynamic,
                },
            ],
            config: ConvConfig {
                window: Window {
                    kernel: (3, 5),
                    stride: (2, 1),
                    dilation: (3, 1),
                    pads: (4, 2, 4, 2),
                    auto_pad: 'NOTSET',
                },
                groups: 2,
            },
        },
    ],
    inputs: [
        Argument {
            name: 'input',
            type: Tensor {
                dtype: float32,
                rank: 4,
                shape: (2, 4, 10, 15),
                static_shape: (2, 4, 10, 15),
            },
            value_source: Dynamic,
        },
    ],
    outputs: [
        Argument {
            name: 'out',
            type: Tensor {
                dtype: float32,
                rank: 4,
                shape: (2, 6, 6, 15),
                static_shape: (2, 6, 6, 15),
            },
            value_source: Dynamic,
        },
    ],
}
1 node: 1 convolution
"""
    )


def test_scalars_shapes_sequences_and_subgraphs_have_types_of_their_own() -> None:
    text = inspect(
        parse(
            """g (float[N, 4] x, bool c, seq(float[2]) s) => (float[a, b] y, float[2] z) {
                shape = Shape(x)  i = Constant<value_int = 0>()  n = Gather(shape, i)
                y = If (c) <then_branch = t () => (float[N, 4] p) { p = Neg(x) },
                            else_branch = f () => (float[N, 4] q) { q = Exp(x) }>
                z = SequenceAt(s, n)
            }"""
        )
    )
    assert "type: Scalar {" in text and "value: N," in text
    assert "type: Shape {" in text and "dims: (N, 4)," in text
    assert "type: Sequence {" in text
    assert "then_branch: Graph {" in text
    assert text.splitlines()[-1] == "6 nodes: 2 elementwise, 1 constant, 1 control, 1 indexing, 1 sequence"


def test_names_cannot_break_out_of_the_text() -> None:
    model = parse("g (float[2] x) => (float[2] y) { y = Neg(x) }")
    model.graph.node[0].name = "a',\n}\x1b[31m"
    assert "\x1b" not in inspect(model)


def test_no_operator_is_in_the_union_twice() -> None:
    assert len({(o.domain, o.op()) for o in OPERATORS}) == len(OPERATORS)
