"""Read what others wrote: pages, their text, links and language, and files."""
