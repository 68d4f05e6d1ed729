"""The report as one HTML page with plots that needs no network, and its plots as files."""
