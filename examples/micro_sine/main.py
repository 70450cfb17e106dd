"""Show the sine that three dense layers have learnt, as a curve of characters and on the board's LED, if it has one.

Copy the files that `emberlet micro build` wrote for the board beside this file.
"""

import time
from math import pi, sin

import sine

STEPS = 32


def light():
    """A function that sets the brightness of the board's LED from 0 to 1, if it has an LED that can be dimmed."""
    try:
        from machine import PWM, Pin

        pwm = PWM(Pin("LED"), freq=1000, duty_u16=0)
    except (ImportError, TypeError, ValueError, OSError):
        return lambda brightness: None
    return lambda brightness: pwm.duty_u16(int(65535 * brightness))


def main():
    shine, worst = light(), 0
    for k in range(STEPS):
        x = 2 * pi * k / STEPS
        start = time.ticks_us()
        (y,) = sine.predict((x,))
        spent = time.ticks_diff(time.ticks_us(), start)
        worst = max(worst, abs(y - sin(x)))
        shine(min(max((y + 1) / 2, 0), 1))
        print("{:5.2f} {:6.3f} {}*  {} us".format(x, y, " " * round(20 * (y + 1)), spent))
        time.sleep_ms(20)
    print(f"at most {worst:.3f} off")


if __name__ == "__main__":
    main()
