"""Recognize motions. On a board without a sensor, and on a desktop, the readings are those of motions.py.

Copy the files that `emberlet micro build` wrote for the board, `emberlet/micro` and motions.py beside this file.
"""

import time

import accelerometer
from emberlet.micro.stream import Rows
from motions import KINDS, motion

# 64 readings at 50 a second; a new answer every 16.
ROWS = Rows(accelerometer.input, *accelerometer.input_grids[0], columns=3, hop=16)


def watch(readings):
    """The motions seen in a stream of readings, one every 16, and the milliseconds that an inference took."""
    seen, spent = [], 0
    ROWS.clear()
    for reading in readings:
        if ROWS.append(reading):
            start = time.ticks_us()
            accelerometer.run()
            spent += time.ticks_diff(time.ticks_us(), start)
            seen.append(KINDS[accelerometer.best()])
    return seen, spent / len(seen) / 1000


def main():
    for n, kind in enumerate(KINDS + KINDS):
        seen, milliseconds = watch(motion(kind, 70001 + n, 128))
        print("{:<7} seen as {} {:.2f} ms an inference".format(kind, " ".join(seen), milliseconds))


if __name__ == "__main__":
    main()
