"""`python -m farfield` is the command `farfield`."""

from farfield.cli import main

if __name__ == "__main__":
    main()
