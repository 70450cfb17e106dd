"""The script `emberlet`, and `python -m emberlet COMMAND …` where that is not on the path."""

import sys


def main() -> int:
    """Run the command line of this process. Ctrl-C ends it with one line, also while modules load."""
    try:
        from .host.cli import main as run

        return run()
    except KeyboardInterrupt:
        print("emberlet: interrupted", file=sys.stderr)
        return 130
    finally:
        _end_at_the_next_interrupt()


def _end_at_the_next_interrupt() -> None:
    # What runs at exit would print a traceback of its own.
    try:
        import signal

        signal.signal(signal.SIGINT, signal.SIG_DFL)
    except KeyboardInterrupt:  # the command had ended before it
        _end_at_the_next_interrupt()


if __name__ == "__main__":
    sys.exit(main())
