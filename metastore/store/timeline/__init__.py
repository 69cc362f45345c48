"""SQL for timelines: instants, their plans, rejected commits."""
