"""Pictures of a model: its modules as nested boxes, in SVG, in HTML and in the terminal."""
