"""The experiments of the refresh paper: cases, their runs, tables and plots."""
