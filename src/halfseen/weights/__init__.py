"""From what the members say to one answer."""
