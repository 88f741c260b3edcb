"""What a run gives to others: policies in other programs' formats, films, pictures."""
