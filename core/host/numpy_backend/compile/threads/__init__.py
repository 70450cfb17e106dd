"""Plans that several threads run: which of them runs what (`schedule.py`), in which parts (`splitting.py`), and how
they wait for each other (`workers.py`)."""
