"""Other crawlers on the same served web, all requests counted at its proxy."""
