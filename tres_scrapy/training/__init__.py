"""Training of a topic pack: documents, fitting, validation and the report (P 3.3)."""
