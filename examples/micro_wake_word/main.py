"""Listen for three sounds. On a board without a microphone, and on a desktop, it listens to the sounds of sounds.py.

Copy the files that `emberlet micro build` wrote for the board, `emberlet/micro` and sounds.py beside this file.
"""

import time

import wake_word
from emberlet.micro.audio import LogMel
from emberlet.micro.stream import Rows
from sounds import KINDS, sound

FRONT = LogMel(rate=16000, size=512, hop=256, count=32)
ROWS = Rows(wake_word.input, *wake_word.input_grids[0], columns=32, hop=8, unit=1 / 256)
SURE = 200  # of 256


def listen(blocks):
    """The sound heard in a stream of blocks, and the milliseconds an inference took; "nothing" where there was none."""
    heard, spent, count = KINDS[0], 0, 0
    ROWS.clear()
    for block in blocks:
        if not FRONT.push(block) or not ROWS.append(FRONT.features()):
            continue
        start = time.ticks_us()
        wake_word.run()
        spent += time.ticks_diff(time.ticks_us(), start)
        count += 1
        k = wake_word.best()
        if k and wake_word.output[k] >= SURE:
            heard = KINDS[k]
    return heard, spent / count / 1000


def main():
    for n in range(8):
        kind = KINDS[n % 4]
        heard, milliseconds = listen(sound(kind, 90001 + n))
        print(f"{kind:<8} heard as {heard:<8} {milliseconds:.2f} ms an inference")


if __name__ == "__main__":
    main()
