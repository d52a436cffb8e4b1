"""What a page and its site say about the use of the page."""
