"""SQL for transactions, write ids, locks and compactions."""
