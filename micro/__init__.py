"""Inference on microcontrollers: what lies here runs on the board, `emberlet.micro.builder` on the computer."""
