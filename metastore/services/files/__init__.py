"""Moving and publishing files: intents recorded in a transaction, carried out after it."""
