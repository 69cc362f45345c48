"""Programs that run alone, in a directory of their own: spark-submit puts that first on the path of modules."""
