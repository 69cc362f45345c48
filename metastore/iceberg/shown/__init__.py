"""Tables of other formats, shown as Iceberg: what is shown of them, and the files that say so."""
