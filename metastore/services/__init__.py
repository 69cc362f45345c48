"""The rules: what Hive would do. Packages in the order of `[tool.importlinter]`; `wiring` puts them together."""
