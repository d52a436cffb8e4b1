"""How a topic pack is made: documents, fitting, validation and the report (P 3.3)."""
