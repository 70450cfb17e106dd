"""Losses of sequences whose alignment is unknown."""

from ..functional.reductions.alignments import ctc_loss, rnnt_loss
from .more_losses import _Loss


class CTCLoss(_Loss):
    """-log of the probability of the targets under every alignment with blanks (Graves et al. 2006). blank: its class;
    zero_infinity: 0 where no alignment fits."""

    SHOWN = "blank reduction zero_infinity"

    def __init__(self, blank=0, reduction="mean", zero_infinity=False):
        super().__init__(reduction)
        self.blank = blank
        self.zero_infinity = zero_infinity

    def forward(self, log_probs, targets, input_lengths, target_lengths):
        """log_probs (time, n, classes), targets (n, longest), lengths (n,) -> a 0-D tensor, or with "none" (n,)."""
        return ctc_loss(
            log_probs, targets, input_lengths, target_lengths, self.blank, self.reduction, self.zero_infinity
        )  # fmt: skip


class RNNTLoss(_Loss):
    """-log of the probability of the targets under every alignment of a transducer (Graves 2012). blank: its class;
    fused_log_softmax: the logits are no log-probabilities yet."""

    SHOWN = "blank reduction fused_log_softmax"

    def __init__(self, blank=0, reduction="mean", fused_log_softmax=True):
        super().__init__(reduction)
        self.blank = blank
        self.fused_log_softmax = fused_log_softmax

    def forward(self, logits, targets, logit_lengths, target_lengths):
        """logits (n, time, longest + 1, classes), targets (n, longest), lengths (n,) -> a 0-D tensor, or with "none"
        (n,)."""
        return rnnt_loss(
            logits, targets, logit_lengths, target_lengths, self.blank, self.reduction, self.fused_log_softmax
        )  # fmt: skip
