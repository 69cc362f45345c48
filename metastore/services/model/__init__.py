"""Names, objects and values that every other package of the services shares. No service is in here."""
