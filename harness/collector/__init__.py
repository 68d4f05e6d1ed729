"""What the engines say of themselves: their metrics pages, scraped through the run."""
