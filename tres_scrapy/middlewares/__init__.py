"""The middlewares."""
