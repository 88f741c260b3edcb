"""Policies in other programs' formats, films, pictures: a run, handed on."""
