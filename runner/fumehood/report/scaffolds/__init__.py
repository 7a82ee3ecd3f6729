"""What a scaffold does to a model's result: the same tasks, the same model, another way of working."""
