"""The plots of the report, a module for each of its parts."""
