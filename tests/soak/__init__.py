"""`dev.py soak`: a year of a process's failures in minutes.

Each module in scenarios/ does one kind of harm at random moments and checks after each that the next call still gives
the right result:

    WHAT                        a line for the table
    NEEDS                       components (tools/components.py)
    SHARE                       its part of the time, beside the others'
    run(clock, choose) -> Told  what was tried and what went wrong

A scenario runs in a child process, so that an abort is a row of the table and not the end of the run. `choose` is a
random.Random of the seed that is printed: the same seed draws the same moments, as far as a machine keeps time.
"""
