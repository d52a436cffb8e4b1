"""The crawlers that TRES is compared with (P 3.4, Tables 3 and 4)."""
