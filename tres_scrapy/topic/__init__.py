"""A topic: keywords, word vectors, classifier, pack (P 2.3, 3.3)."""
