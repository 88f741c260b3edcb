"""Programs in the documents' style, written anew, to measure against."""
