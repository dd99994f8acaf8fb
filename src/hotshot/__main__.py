"""`python -m hotshot` is the command line."""

from hotshot.cli import main

if __name__ == "__main__":
    main()
