"""`python -m distboost` is the command line."""

from distboost.cli import main

if __name__ == "__main__":
    main(prog_name="python -m distboost")
