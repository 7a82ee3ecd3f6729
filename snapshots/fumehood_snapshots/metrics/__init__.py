"""How good retrieval is, against judgements; knows nothing about agents' answers."""
