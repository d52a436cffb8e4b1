"""Pages that scripts build: which they are, and a browser that runs them without doing harm."""
