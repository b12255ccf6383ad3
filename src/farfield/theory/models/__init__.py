"""What a model's configuration says about how far each of its layers sees."""
