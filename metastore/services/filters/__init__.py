"""Filters: parses texts and serialised expressions, and converts them to conditions for the database."""
