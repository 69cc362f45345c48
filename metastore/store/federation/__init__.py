"""What a front of several metastores keeps."""
