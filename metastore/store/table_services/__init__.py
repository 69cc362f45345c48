"""What the table management service keeps: its queue of jobs, its decisions, and the figures that it decides by."""
