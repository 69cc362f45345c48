"""Which rights each Thrift method needs, and what of its answer a caller gets to see."""
