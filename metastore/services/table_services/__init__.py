"""The table management service's side of the server: facts about tables, decisions, and the queue of jobs."""
