"""Metrics: what is measured while a model trains or is validated.

    metric = AccuracyMetric()
    for batch in loader:
        entry = metric.update(AccuracyInput(model(batch.images), batch.targets))
    print(entry.formatted, metric.value())

Every metric has `update(input, metadata=None)`, which returns a MetricEntry; `compute()`, the result for everything
since the last `clear()`, whatever the sizes of the batches were; and `clear()`. A metric that is a number is a Numeric,
and `value()` is that number. Every name is imported on first use.
"""

from ...lazy import lazy

__getattr__, __dir__ = lazy(
    globals(),
    {
        "train.metric.base": "Adaptor FormatOptions Metric MetricEntry MetricMetadata Numeric NumericMetricState",
        "train.metric.inputs": "AccuracyInput ConfusionInput ImageInput LossInput PerplexityInput RankingInput "
        "RegressionInput TextInput",
        "train.metric.shares": "AccuracyMetric HammingScore TopKAccuracyMetric accuracy",
        "train.metric.confusion": "ConfusionMatrix FBetaScoreMetric PrecisionMetric RecallMetric",
        "train.metric.ranking": "AucPrMetric AurocMetric",
        "train.metric.regression": "MaeMetric MseMetric R2Metric RmseMetric",
        "train.metric.loss": "LossMetric PerplexityMetric",
        "train.metric.texts": "CharErrorRate WordErrorRate",
        "train.metric.images": "PsnrMetric SsimMetric",
        "train.metric.progress": "IterationSpeedMetric LearningRateMetric",
        "train.metric.system": "CpuMemory CpuTemperature CpuUse CudaMetric GpuTemperature GpuUse",
    },
)
