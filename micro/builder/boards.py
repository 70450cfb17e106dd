"""Boards: their memory, flash, clock, and estimated cycles.

Memory and clock are those of the chip and of MicroPython's stock firmware for the named board, rounded down. `room`
overestimates that firmware's size, and counts only the first megabyte of an ESP8266, where code must be. No board has
confirmed the cycles of an instruction.
"""

from __future__ import annotations

from dataclasses import dataclass

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


BOARDS = {
    board.name: board
    for board in (
        Board(
            "rp2",
            "Raspberry Pi Pico, RP2040",
            "armv6m",
            125,
            264 * KB,
            190 * KB,
            1408 * KB,
            1664 * KB,
            1.37,
            "rp2",
            True,
            True,
        ),
        Board(
            "rp2350",
            "Raspberry Pi Pico 2, RP2350",
            "armv7emsp",
            150,
            520 * KB,
            440 * KB,
            2560 * KB,
            3648 * KB,
            1.09,
            "rp2",
            True,
        ),
        Board("esp32", "ESP32, no PSRAM", "xtensawin", 160, 520 * KB, 100 * KB, 2048 * KB, 2176 * KB, 1.18, "esp32"),
        Board(
            "esp32s3", "ESP32-S3, no PSRAM", "xtensawin", 160, 512 * KB, 180 * KB, 2048 * KB, 2176 * KB, 1.18, "esp32"
        ),
        Board("esp32c3", "ESP32-C3", "rv32imc", 160, 400 * KB, 120 * KB, 2048 * KB, 2112 * KB, 1.27, "esp32"),
        Board("esp8266", "ESP8266", "xtensa", 80, 80 * KB, 36 * KB, 2048 * KB, 320 * KB, 1.36),
        Board("stm32f4", "pyboard v1.1, STM32F405", "armv7emsp", 168, 192 * KB, 100 * KB, 112 * KB, 576 * KB, 1.09),
        Board("stm32h7", "NUCLEO-H743ZI", "armv7emdp", 400, 1024 * KB, 400 * KB, 128 * KB, 1536 * KB, 0.73),
        Board("nrf52840", "nRF52840", "armv7emsp", 64, 256 * KB, 128 * KB, 64 * KB, 512 * KB, 1.09),
        Board("samd51", "SAMD51", "armv7emsp", 120, 192 * KB, 120 * KB, 64 * KB, 160 * KB, 1.09),
        Board("unix", "MicroPython's Unix port, x86-64", "x64", 3000, 1 << 30, 2048 * KB, 1 << 30, 1 << 30, 0.11),
        Board("teensy41", "Teensy 4.1, i.MX RT1062", "armv7emdp", 600, 1024 * KB, 500 * KB, 7168 * KB, 7424 * KB, 0.73),
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
