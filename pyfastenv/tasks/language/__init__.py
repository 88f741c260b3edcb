"""Tasks as a user writes them, how they are found, and what helps to write them."""
