"""How fast it is: `python -m bench`."""
