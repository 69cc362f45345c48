"""Privileges, roles and delegation tokens."""
