"""Boards: their memory, flash, clock, and estimated cycles.

Memory and clock are those of the chip and of MicroPython's stock firmware for the named board, rounded down. `room`
overestimates that firmware's size, and counts only the first megabyte of an ESP8266, where code must be. No board has
confirmed the cycles of an instruction.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from emberlet.errors import UnsupportedError

KB = 1024


@dataclass(frozen=True)
class Board:
    """arch: mpy-cross's name for the instruction set; ram: the chip's memory; heap: the part available to a program
    under MicroPython; flash: the size of the file system; room: the flash that the stock firmware leaves free, which a
    custom firmware can use for frozen modules, a ROMFS or a partition; cycles: of an instruction, on average.

    is_timed: whether those are the processor's published ones, weighted by how often networks execute each instruction
    (benches/_micro_cycles.py); otherwise they are assumed.

    chip: how flash partitions are read: "rp2", "esp32", or "" if they cannot be; mapped: whether a partition is read in
    place.
    """

    name: str
    title: str
    arch: str
    mhz: int
    ram: int
    heap: int
    flash: int
    room: int
    cycles: float
    chip: str = ""
    mapped: bool = False
    is_timed: bool = False


def _board(
    name: str, title: str, arch: str, mhz: int, ram: int, heap: int, flash: int, room: int, cycles: float, *more: Any
) -> Board:
    """Sizes are in kilobytes. more: as in Board."""
    return Board(name, title, arch, mhz, KB * ram, KB * heap, KB * flash, KB * room, cycles, *more)


BOARDS = {
    board.name: board
    for board in (
        _board("rp2", "Raspberry Pi Pico, RP2040", "armv6m", 125, 264, 190, 1408, 1664, 1.37, "rp2", True, True),
        _board("rp2350", "Raspberry Pi Pico 2, RP2350", "armv7emsp", 150, 520, 440, 2560, 3648, 1.09, "rp2", True),
        _board("esp32", "ESP32, no PSRAM", "xtensawin", 160, 520, 100, 2048, 2176, 1.18, "esp32"),
        _board("esp32s3", "ESP32-S3, no PSRAM", "xtensawin", 160, 512, 180, 2048, 2176, 1.18, "esp32"),
        _board("esp32c3", "ESP32-C3", "rv32imc", 160, 400, 120, 2048, 2112, 1.27, "esp32"),
        _board("esp8266", "ESP8266", "xtensa", 80, 80, 36, 2048, 320, 1.36),
        _board("stm32f4", "pyboard v1.1, STM32F405", "armv7emsp", 168, 192, 100, 112, 576, 1.09),
        _board("stm32h7", "NUCLEO-H743ZI", "armv7emdp", 400, 1024, 400, 128, 1536, 0.73),
        _board("nrf52840", "nRF52840", "armv7emsp", 64, 256, 128, 64, 512, 1.09),
        _board("samd51", "SAMD51", "armv7emsp", 120, 192, 120, 64, 160, 1.09),
        _board("unix", "MicroPython's Unix port, x86-64", "x64", 3000, 1 << 20, 2048, 1 << 20, 1 << 20, 0.11),
        _board("teensy41", "Teensy 4.1, i.MX RT1062", "armv7emdp", 600, 1024, 500, 7168, 7424, 0.73),
    )
}


# The boards' product names, and the names of their firmware on MicroPython's download page.
ALIASES = {
    "pico": "rp2",
    "rpi_pico": "rp2",
    "pico2": "rp2350",
    "rpi_pico2": "rp2350",
    "esp32_generic": "esp32",
    "esp32_generic_s3": "esp32s3",
    "esp32_generic_c3": "esp32c3",
    "esp8266_generic": "esp8266",
    "pyboard": "stm32f4",
    "pybv11": "stm32f4",
    "nucleo_h743zi": "stm32h7",
}


def board(name: str) -> Board:
    """The board called `name`: a key of BOARDS or ALIASES, in any case.

    Raises:
        UnsupportedError: no board has that name.
    """
    key = name.lower()
    key = ALIASES.get(key, key)
    if key not in BOARDS:
        raise UnsupportedError(f"unknown board {name!r}; known boards: {', '.join([*BOARDS, *ALIASES])}")
    return BOARDS[key]
