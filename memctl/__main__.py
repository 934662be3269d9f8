"""``python -m memctl`` is ``memctl``."""

from memctl.cli.main import main

if __name__ == "__main__":
    main()
