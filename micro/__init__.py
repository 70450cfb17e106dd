"""Inference on microcontrollers: what lies here directly runs on the board, `emberlet.micro.build` on the computer."""
