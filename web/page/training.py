"""A network learns to read digits on the GPU of this tab, under MicroPython.

`step.plan` is a training step that was compiled ahead: forward pass, backward pass and Adam's update of two dense
layers. `network.plan` computes the network's scores from its weights and images.
"""

import json

import emberlet
from emberlet.data import ArrayDataset, DataLoader, PartialDataset
from emberlet.wgpu_backend import device, plan_file

RATE = 0.01
BATCH = 30
TRAINING = 270  # the first images; the others are read after each epoch

_state = {}


async def begin(folder):
    """Read the images, and load the plans on to the GPU; returns its name."""
    with open(folder + "/digits.json", "rb") as file:
        found = json.load(file)
    images = emberlet.asarray(found["images"], dtype="float32", backend="python") / 16  # (360, 64)
    labels = emberlet.asarray(found["labels"], dtype="int64", backend="python")
    data = ArrayDataset(images, labels)
    _state["batches"] = DataLoader(PartialDataset(data, 0, TRAINING), batch_size=BATCH, shuffle=1)
    _state["others"] = images[TRAINING:], labels[TRAINING:]
    gpu = await device.open_device_async()
    _state["step"] = plan_file.load(folder + "/step.plan")
    _state["network"] = plan_file.load(folder + "/network.plan")
    return {"adapter": gpu.raw.adapter.summary}


async def epoch():
    """Learn from every image once, and read the others."""
    loss = 0.0
    count = 0
    for images, labels in _state["batches"]:
        loss += (await _state["step"].run_async(RATE, images, labels)).to_list()
        count += 1
    return {"loss": loss / count, "accuracy": await accuracy()}


async def accuracy():
    """The share of the others that the network reads right now."""
    network = _state["network"]
    weights = await _state["step"].to_record_async()
    images, labels = _state["others"]
    given = [weights[port.name] if port.name in weights else images for port in network.inputs]
    (scores,) = await network.run_async(*given)
    return (scores.to_tensor("python").argmax(1) == labels).astype("float32").mean().item()


async def save(path):
    """Write the weights to a burnpack, which `load_file` of the same network reads anywhere."""
    weights = await _state["step"].to_record_async()
    weights.save(path)
