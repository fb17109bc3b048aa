"""Text for people: numbers, units, tables, and HTML for notebooks."""
