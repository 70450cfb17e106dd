"""The inference of the guide: the saved model on one digit."""

from data import MnistBatcher
from training import TrainingConfig


def infer(artifact_dir, item, backend=None):
    """Load the configuration and the weights, and predict an item; returns the predicted digit."""
    config = TrainingConfig.load(f"{artifact_dir}/config.json")
    model = config.model.init(backend)
    model.load_file(f"{artifact_dir}/model.bpk")
    batch = MnistBatcher().batch([item])
    output = model.forward(batch.images.to(model.backends()[0]))
    predicted = output.argmax(1).item()
    print(f"Predicted {predicted} Expected {item.label}")
    return predicted
