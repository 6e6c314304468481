"""`python -m halfseen` is the command line."""

from halfseen.cli import main

main()
