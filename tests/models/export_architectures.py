"""Make the models under `architectures/` again: small networks of many architectures, for the table of modules.

    pip install torch==2.13.0 transformers==5.23.0 onnx onnxscript numpy
    pip install torchvision timm==1.0.31                   # for those whose name begins with "timm"
    python tests/models/export_architectures.py            # all of them
    python tests/models/export_architectures.py bert       # those whose names begin like this

torch and torchvision must come from the same build: on Linux, PyPI's are for CUDA, and a torch for the CPU needs the
torchvision from its own index. Otherwise every import of transformers fails: "operator torchvision::nms does not
exist".

architectures/NAME.onnx.gz is the export of a network with random weights, by torch.export, or by the TorchScript
exporter where the name ends in "_traced"; NAME.json lists the keys of its state_dict. Language models that are traced
take a mask of padding as their second input, and the "_cached" ones keys and values of earlier tokens.
"""

import gzip
import importlib
import json
import logging
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import onnx
import torch
import transformers as hf
from torch import nn

HERE = Path(__file__).parent / "architectures"
KEPT = ("pkg.torch.onnx.name_scopes", "pkg.torch.onnx.class_hierarchy")
TRACED = "_traced"

TEXT = {"vocab_size": 40, "hidden_size": 8, "num_attention_heads": 2, "num_hidden_layers": 4, "intermediate_size": 16}
LONG = {**TEXT, "max_position_embeddings": 32}
SHARED = {**LONG, "num_key_value_heads": 1}
VISION = {
    "hidden_size": 8, "num_attention_heads": 2, "num_hidden_layers": 4, "intermediate_size": 16, "image_size": 32,
    "patch_size": 8,
}  # fmt: skip
SPEECH = {
    "vocab_size": 40, "hidden_size": 8, "num_hidden_layers": 3, "num_attention_heads": 2, "intermediate_size": 16,
    "conv_dim": (8, 8), "conv_stride": (5, 2), "conv_kernel": (10, 3), "num_feat_extract_layers": 2,
    "num_conv_pos_embeddings": 8, "num_conv_pos_embedding_groups": 2,
}  # fmt: skip
GPT2 = {"vocab_size": 40, "n_embd": 8, "n_layer": 4, "n_head": 2, "n_positions": 32}
BART = {
    "vocab_size": 40, "d_model": 8, "encoder_layers": 3, "decoder_layers": 3, "encoder_attention_heads": 2,
    "decoder_attention_heads": 2, "encoder_ffn_dim": 16, "decoder_ffn_dim": 16, "max_position_embeddings": 32,
}  # fmt: skip
WHISPER = {
    "vocab_size": 40, "d_model": 8, "encoder_layers": 4, "encoder_attention_heads": 2, "encoder_ffn_dim": 16,
    "num_mel_bins": 8, "max_source_positions": 20,
}  # fmt: skip

# name -> (the model's class and its configuration's, the configuration, the shape of the input; numbers for tokens)
NETWORKS: dict[str, tuple[str, str, dict[str, Any], tuple[int, ...]]] = {
    "albert": ("AlbertModel", "AlbertConfig", {**LONG, "embedding_size": 8}, (2, 7)),
    "bart": ("BartModel", "BartConfig", BART, (2, 7)),
    "bert": ("BertModel", "BertConfig", {**LONG, "num_hidden_layers": 12}, (2, 7)),
    "clip_text": ("CLIPTextModel", "CLIPTextConfig", LONG, (2, 7)),
    "clip_vision": ("CLIPVisionModel", "CLIPVisionConfig", VISION, (2, 3, 32, 32)),
    "conformer": (
        "Wav2Vec2ConformerModel", "Wav2Vec2ConformerConfig",
        {**SPEECH, "conv_depthwise_kernel_size": 7, "position_embeddings_type": None}, (2, 400),
    ),
    "convnext": (
        "ConvNextModel", "ConvNextConfig", {"hidden_sizes": [4, 8, 12, 16], "depths": [2, 2, 3, 2]}, (2, 3, 64, 64),
    ),
    "deberta": ("DebertaV2Model", "DebertaV2Config", LONG, (2, 7)),
    "deit": ("DeiTModel", "DeiTConfig", VISION, (2, 3, 32, 32)),
    "dinov2": ("Dinov2Model", "Dinov2Config", VISION, (2, 3, 32, 32)),
    "distilbert": (
        "DistilBertModel",
        "DistilBertConfig",
        {"vocab_size": 40, "dim": 8, "n_heads": 2, "n_layers": 4, "hidden_dim": 16, "max_position_embeddings": 32},
        (2, 7),
    ),
    "electra": ("ElectraModel", "ElectraConfig", {**LONG, "embedding_size": 4}, (2, 7)),
    "gemma": ("GemmaForCausalLM", "GemmaConfig", {**SHARED, "head_dim": 4}, (2, 7)),
    "gpt2": ("GPT2LMHeadModel", "GPT2Config", GPT2, (2, 7)),
    "gpt2_cached": ("GPT2LMHeadModel", "GPT2Config", GPT2, (2, 7)),
    "gptj": ("GPTJForCausalLM", "GPTJConfig", {**GPT2, "rotary_dim": 4}, (2, 7)),
    "gptneox": ("GPTNeoXForCausalLM", "GPTNeoXConfig", LONG, (2, 7)),
    "llama": ("LlamaForCausalLM", "LlamaConfig", {**SHARED, "num_hidden_layers": 8}, (2, 7)),
    "llama_cached": ("LlamaForCausalLM", "LlamaConfig", SHARED, (2, 7)),
    "mistral": ("MistralForCausalLM", "MistralConfig", SHARED, (2, 7)),
    "opt": (
        "OPTForCausalLM",
        "OPTConfig",
        {
            "vocab_size": 40, "hidden_size": 8, "num_attention_heads": 2, "num_hidden_layers": 4, "ffn_dim": 16,
            "max_position_embeddings": 32, "word_embed_proj_dim": 8,
        },
        (2, 7),
    ),
    "phi": ("PhiForCausalLM", "PhiConfig", LONG, (2, 7)),
    "phi3": ("Phi3ForCausalLM", "Phi3Config", {**SHARED, "pad_token_id": 0}, (2, 7)),
    "qwen2": ("Qwen2ForCausalLM", "Qwen2Config", SHARED, (2, 7)),
    "qwen3": ("Qwen3ForCausalLM", "Qwen3Config", {**SHARED, "head_dim": 4}, (2, 7)),
    "resnet50": (
        "ResNetForImageClassification", "ResNetConfig",
        {"embedding_size": 4, "hidden_sizes": [8, 16, 32, 64], "depths": [3, 4, 6, 3]}, (2, 3, 64, 64),
    ),
    "roberta": ("RobertaModel", "RobertaConfig", LONG, (2, 7)),
    "segformer": (
        "SegformerForSemanticSegmentation",
        "SegformerConfig",
        {
            "hidden_sizes": [4, 8, 12, 16], "depths": [2, 2, 2, 2], "num_attention_heads": [1, 2, 2, 4],
            "decoder_hidden_size": 8, "num_labels": 5,
        },
        (2, 3, 64, 64),
    ),
    "swin": (
        "SwinModel",
        "SwinConfig",
        {"image_size": 32, "patch_size": 2, "embed_dim": 8, "depths": [2, 2], "num_heads": [2, 4], "window_size": 4},
        (2, 3, 32, 32),
    ),
    "t5": (
        "T5EncoderModel", "T5Config",
        {"vocab_size": 40, "d_model": 8, "d_kv": 4, "d_ff": 16, "num_layers": 4, "num_heads": 2}, (2, 7),
    ),
    "vit": ("ViTModel", "ViTConfig", {**VISION, "num_hidden_layers": 6}, (2, 3, 32, 32)),
    "wav2vec2": ("Wav2Vec2Model", "Wav2Vec2Config", SPEECH, (2, 400)),
    "whisper": ("WhisperEncoder", "WhisperConfig", WHISPER, (2, 8, 40)),
    "yolos": (
        "YolosModel", "YolosConfig", {**VISION, "image_size": [32, 32], "num_detection_tokens": 5}, (2, 3, 32, 32),
    ),
}  # fmt: skip
TIMM: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "timm_convnext": (
        lambda: _timm("convnext").ConvNeXt(num_classes=5, depths=(2, 2, 3, 2), dims=(4, 8, 12, 16)),
        (64, 64),
    ),
    "timm_efficientnet": (
        lambda: _timm("efficientnet")._gen_efficientnet("efficientnet_b0", 0.1, num_classes=5),
        (64, 64),
    ),
    "timm_mobilenetv3": (
        lambda: _timm("mobilenetv3")._gen_mobilenet_v3("mobilenetv3_small_050", 0.1, num_classes=5),
        (64, 64),
    ),
    "timm_regnety": (
        lambda: _timm("regnet").RegNet(
            _timm("regnet").RegNetCfg(w0=8, wa=8.0, wm=2.0, group_size=4, depth=10, se_ratio=0.25), num_classes=5
        ),
        (64, 64),
    ),
    "timm_vit": (
        lambda: _timm("vision_transformer").VisionTransformer(
            img_size=32, patch_size=8, embed_dim=8, depth=6, num_heads=2, mlp_ratio=2.0, num_classes=5
        ),
        (32, 32),
    ),
}  # name -> (the network, the size of its images); ones of timm that are too large for a test get narrower layers
WANTED = """albert bart_traced bert bert_traced clip_text_traced clip_vision conformer_traced convnext_traced
deberta_traced deit dinov2_traced distilbert_traced electra gemma_traced gpt2 gpt2_cached_traced gptj_traced gptneox
llama llama_traced llama_cached_traced mistral_traced opt phi phi_traced phi3_traced qwen2 qwen3_traced resnet50
resnet50_traced roberta_traced segformer_traced swin_traced t5_traced timm_convnext_traced
timm_efficientnet timm_efficientnet_traced timm_mobilenetv3 timm_mobilenetv3_traced timm_regnety timm_vit
timm_vit_traced vit vit_traced wav2vec2 whisper yolos""".split()


def _timm(file: str) -> Any:
    return importlib.import_module(f"timm.models.{file}")


def network(name: str, traced: bool) -> nn.Module:
    if name in TIMM:
        return TIMM[name][0]()
    kind, config, given, _ = NETWORKS[name]
    settings = getattr(hf, config)(**given)
    if kind == "WhisperEncoder":
        from transformers.models.whisper.modeling_whisper import WhisperEncoder as made
    else:
        made = getattr(hf, kind)
    settings.use_cache = False
    if traced:
        settings._attn_implementation = "eager"
    return made(settings)


def randomized(made: nn.Module) -> nn.Module:
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for p in made.parameters():
            p.copy_(torch.randn(p.shape, generator=generator) * 0.2 + (p.ndim == 1))
        for key, b in made.named_buffers():
            if "running_var" in key:
                b.copy_(torch.rand(b.shape, generator=generator) + 0.5)
            elif "running_mean" in key:
                b.copy_(torch.randn(b.shape, generator=generator) * 0.1)
    return made.eval()


def coarse(made: nn.Module) -> None:
    """Round the weights, so that a file of many is compressed well."""
    with torch.no_grad():
        for p in made.parameters():
            p.copy_((p * 16).round() / 16)


def forwarded(made: nn.Module, kind: str) -> Callable[..., Any]:
    """A forward that takes tensors alone, and returns them."""
    inner, key = made.forward, made.main_input_name
    if kind == "cached":
        layers = made.config.num_hidden_layers

        def forward(ids: Any, mask: Any, *past: Any) -> Any:
            cache = hf.DynamicCache([(past[2 * i], past[2 * i + 1]) for i in range(layers)])
            out = inner(input_ids=ids, attention_mask=mask, past_key_values=cache, use_cache=True)
            return (out.logits, *(x for layer in out.past_key_values.layers for x in (layer.keys, layer.values)))

        return forward
    if kind == "masked":
        return lambda ids, mask: (inner(input_ids=ids, attention_mask=mask).logits,)
    return lambda x: inner(**{key: x}).to_tuple()


def export(name: str) -> None:
    torch.manual_seed(0)
    base, traced = name.removesuffix(TRACED), name.endswith(TRACED)
    made = randomized(network(base, traced))
    if base in TIMM:
        coarse(made)
    shape = (2, 3, *TIMM[base][1]) if base in TIMM else NETWORKS[base][3]
    text = shape == (2, 7)
    x = torch.randint(0, 40, shape) if text else torch.randn(shape)
    axes: list[dict[int, str]] = [{0: "batch", 1: "length"} if text else {0: "batch"}]
    inputs: tuple[Any, ...] = (x,)
    names = ["in0"]
    if base.endswith("_cached"):
        heads = getattr(made.config, "num_key_value_heads", 2)
        past = [torch.randn(2, heads, 5, 4) for _ in range(2 * made.config.num_hidden_layers)]
        inputs = (x, torch.ones(2, 12, dtype=torch.int64), *past)
        names = ["ids", "mask", *(f"past_{k}_{i}" for i in range(len(past) // 2) for k in ("key", "value"))]
        axes += [{0: "batch", 1: "past + length"}, *[{0: "batch", 2: "past"}] * len(past)]
        made.forward = forwarded(made, "cached")
    elif traced and base not in TIMM and "LM" in NETWORKS[base][0]:
        inputs, names, axes = (x, torch.ones_like(x)), ["in0", "in1"], axes * 2
        made.forward = forwarded(made, "masked")
    elif traced and base not in TIMM:
        made.forward = forwarded(made, "")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        if traced:
            given = dict(zip(names, axes, strict=True))
            torch.onnx.export(made, inputs, path, input_names=names, dynamic_axes=given, dynamo=False, opset_version=17)
        else:
            dims = {n: torch.export.Dim(n, min=1 if n == "batch" else 2, max=24) for a in axes for n in a.values()}
            shapes = tuple({i: dims[n] for i, n in a.items()} for a in axes)
            options: dict[str, Any] = {"dynamic_shapes": shapes, "dynamo": True, "external_data": False}
            torch.onnx.export(made, inputs, path, input_names=names, **options)
        proto = onnx.load(path)
    for node in proto.graph.node:
        kept = [p for p in node.metadata_props if p.key in KEPT]
        del node.metadata_props[:]
        node.metadata_props.extend(kept)
        node.doc_string = ""
    del proto.graph.value_info[:]
    del proto.graph.metadata_props[:]
    write(name, proto.SerializeToString(), sorted(made.state_dict()))


def write(name: str, model: bytes, keys: list[str]) -> None:
    HERE.mkdir(exist_ok=True)
    (HERE / f"{name}.onnx.gz").write_bytes(gzip.compress(model, 9, mtime=0))
    (HERE / f"{name}.json").write_text(json.dumps(keys, indent=0) + "\n", encoding="utf-8")
    print(name, (HERE / f"{name}.onnx.gz").stat().st_size)


if __name__ == "__main__":
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    for name in WANTED:
        if not sys.argv[1:] or any(name.startswith(a) for a in sys.argv[1:]):
            export(name)
