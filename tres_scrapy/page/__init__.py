"""Read untrusted pages and files: text, links, language, duplicates."""
