"""The folder a snapshot is: file names, manifest, mapped arrays and strings, verification."""
