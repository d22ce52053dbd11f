"""One function per question that a page, the API and the command line ask. Each returns the same to all three."""
