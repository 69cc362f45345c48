"""What tools/generate_types.py makes of thrift_idl."""
