"""Timelines of lake tables: begin, complete, roll back and list instants."""
