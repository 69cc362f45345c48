"""Keyed lake tables beside Hudi's and Paimon's, by SQL: what runs in the interpreter of Spark 3.5."""
