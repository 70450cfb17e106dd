"""Positional encodings: added sinusoids (Vaswani et al. 2017) and rotations (Su et al. 2021)."""

from .. import dtypes
from ..errors import ShapeError
from ..functional.creation.fills import arange
from ..module import Module


class _Encoding(Module):
    """A table that is computed on first use, once for each backend."""

    def _table_for(self, x):
        table = getattr(self, "table", None)
        if table is None or table.backend is not x.backend:
            self.table = table = self._table(x.backend)
        return table if table.dtype is x.dtype else table.astype(x.dtype)


class PositionalEncoding(_Encoding):
    """x + table for x (batch, seq, d_model): table[p][2i] = sin(p / max_timescale^(2i / d_model)), table[p][2i + 1] the
    cosine. Raises ShapeError for more than max_sequence_size steps."""

    SHOWN = "d_model max_sequence_size max_timescale"

    def __init__(self, d_model, max_sequence_size=5000, max_timescale=10000):
        if d_model % 2:
            raise ShapeError("PositionalEncoding: d_model is {}, expected an even number".format(d_model))
        self.d_model = d_model
        self.max_sequence_size = max_sequence_size
        self.max_timescale = max_timescale

    def forward(self, x):
        """x (batch, seq, d_model) -> the same shape."""
        seq = x.shape[-2]
        if x.shape[-1] != self.d_model or seq > self.max_sequence_size:
            raise ShapeError(
                "PositionalEncoding of d_model {} and at most {} steps does not fit shape {}".format(
                    self.d_model, self.max_sequence_size, x.shape
                )
            )
        return x + self._table_for(x).narrow(0, 0, seq)

    def _table(self, backend):
        angles = _angles(self.max_sequence_size, self.d_model, self.max_timescale, None, backend)
        return backend.concat((_last(angles.sin()), _last(angles.cos())), 2).reshape((-1, self.d_model))


class RotaryEncoding(_Encoding):
    """x (…, seq, d_model) with every pair of elements rotated by its position times theta^(-2i / d_model).

    A pair is (2i, 2i + 1) if interleaved, as in Burn, else (i, i + d_model / 2), as in GPT-NeoX and Llama. scaling: a
    function from a frequency (radians per step) to the one to use. Raises ShapeError for positions past
    max_sequence_length.
    """

    SHOWN = "d_model max_sequence_length theta"

    def __init__(self, max_sequence_length, d_model, theta=10000.0, interleaved=True, scaling=None):
        if d_model % 2:
            raise ShapeError("RotaryEncoding: d_model is {}, expected an even number".format(d_model))
        self.max_sequence_length = max_sequence_length
        self.d_model = d_model
        self.theta = theta
        self.interleaved = interleaved
        self.scaling = scaling

    def forward(self, x, start=0):
        """start: the position of x's first step."""
        seq = x.shape[-2]
        if x.shape[-1] != self.d_model or start + seq > self.max_sequence_length:
            raise ShapeError(
                "RotaryEncoding of d_model {} and at most {} steps does not fit shape {} from step {}".format(
                    self.d_model, self.max_sequence_length, x.shape, start
                )
            )
        from ..functional.transformer.rotary import rotary_embedding

        cos, sin = self._table_for(x).narrow(1, start, seq).split(2, 0)
        lead = x.reshape((-1, 1, seq, self.d_model)) if x.size else x
        return rotary_embedding(lead, cos.squeeze(0), sin.squeeze(0), interleaved=self.interleaved).reshape(x.shape)

    def _table(self, backend):
        angles = _angles(self.max_sequence_length, self.d_model, self.theta, self.scaling, backend)
        shape = (1,) + angles.shape
        return backend.concat((angles.cos().reshape(shape), angles.sin().reshape(shape)), 0)


def _angles(steps, d_model, base, scaling, backend):
    """(steps, d_model / 2) float32: each position times each frequency."""
    frequencies = [base ** (-2 * i / d_model) for i in range(d_model // 2)]
    if scaling:
        frequencies = [scaling(f) for f in frequencies]
    row = backend.from_list(frequencies, dtypes.float32, (1, d_model // 2))
    return arange(steps, dtype=dtypes.float32, backend=backend).reshape((steps, 1)) * row


def _last(x):
    return x.reshape(x.shape + (1,))
