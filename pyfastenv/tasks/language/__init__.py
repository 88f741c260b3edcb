"""What a user writes: tasks, how they are found, and what helps to write them."""
