"""What is asked: scenarios, sessions, and the text that gives every part of a prompt its exact length."""
