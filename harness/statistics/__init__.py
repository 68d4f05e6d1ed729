"""What is known of a number that was measured once: intervals of shares, and of what whole sessions add up to."""
