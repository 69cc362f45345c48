"""One Hive interface over several metastores: where a name lies, and how requests and answers are carried there."""
