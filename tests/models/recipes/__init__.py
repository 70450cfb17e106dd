"""How each model was made."""

from . import contrib, contrib_attention, contrib_quantized, lengths, quantized, sequence, transformer, vision

ALL = [
    *vision.RECIPES, *sequence.RECIPES, *transformer.RECIPES, *lengths.RECIPES, *quantized.RECIPES, *contrib.RECIPES,
    *contrib_quantized.RECIPES, *contrib_attention.RECIPES,
]  # fmt: skip
