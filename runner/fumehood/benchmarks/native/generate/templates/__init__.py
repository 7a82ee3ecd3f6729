"""Things to do, by world. A story is a function of named chance and a number that makes its names unique."""
