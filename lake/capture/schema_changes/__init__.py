"""How the tables of a source have changed: what each change is, and what is to become of it."""
