"""Pages for people: self-contained HTML."""
