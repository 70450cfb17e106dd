"""Inference on microcontrollers: this package runs on the board, `emberlet.micro.builder` on the computer."""


def __dir__():
    return ["audio", "builder", "image", "mfcc", "speech", "stream"]
