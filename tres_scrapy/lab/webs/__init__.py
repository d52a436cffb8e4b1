"""Offline webs: synthetic, corpus, and the HTTP proxy that serves them."""
