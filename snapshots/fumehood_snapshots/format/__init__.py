"""The snapshot folder: file names, manifest, memory-mapped arrays and strings, verification."""
