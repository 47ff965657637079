"""Engines: toolchains behind one door to TensorRT, built in a child process and read back."""
