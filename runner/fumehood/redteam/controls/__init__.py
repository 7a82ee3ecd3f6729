"""Controls: the attacks of the corpus with their protection removed."""
