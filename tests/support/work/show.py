"""Prints the kernels of a program for each kind of GPU: python -m tests.support.work.show PROGRAM"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

if __name__ == "__main__":
    from support.work.counting import DEVICES, OPEN, plan_of, written
    from support.work.table import PROGRAMS

    program = PROGRAMS[sys.argv[1]]
    for device in OPEN if program.dims else DEVICES:
        plan = plan_of(program, device)
        for name, text in plan.kernels:
            print(f"---- {device}: {name}\n{text}")
        plan.kernels = []
        print(f"---- {device}\n{written(plan)}\n")
