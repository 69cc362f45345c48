-- Printed by: metastore capture definitions --into raw.shop

CREATE MATERIALIZED VIEW `customers_changes` AS
WITH images AS (
  SELECT source_table, op, from_json(before, '`id` bigint, `name` string, `city` string') AS old, from_json(after, '`id` bigint, `name` string, `city` string') AS new, unchanged, epoch, commit_lsn, ordinal
  FROM raw.shop WHERE source_table = 'public.customers' AND op IN ('read', 'insert', 'update', 'delete')
), both_images AS (
  SELECT source_table, op, new AS image, unchanged, epoch, commit_lsn, ordinal FROM images WHERE op <> 'delete'
  UNION ALL
  SELECT source_table, 'delete' AS op, old AS image, CAST(NULL AS ARRAY<STRING>) AS unchanged, epoch, commit_lsn, ordinal
  FROM images WHERE op = 'delete' OR (op = 'update' AND old IS NOT NULL AND (images.old.`id` <> images.new.`id`))
), truncations AS (
  SELECT source_table, max(struct(epoch, commit_lsn, ordinal)) AS last FROM raw.shop
  WHERE source_table = 'public.customers' AND op = 'truncate' GROUP BY source_table
), typed AS (
  SELECT both_images.op, both_images.unchanged, both_images.epoch, both_images.commit_lsn, both_images.ordinal,
    both_images.image.`id` AS `id`,
    both_images.image.`name` AS `name`,
    both_images.image.`city` AS `city`
  FROM both_images LEFT JOIN truncations ON both_images.source_table = truncations.source_table
  WHERE truncations.last IS NULL OR struct(both_images.epoch, both_images.commit_lsn, both_images.ordinal) > truncations.last
), changes AS (
  SELECT `id`, epoch, commit_lsn, ordinal, max(op) AS op, max(unchanged) AS unchanged, max(`name`) AS `name`, max(`city`) AS `city` FROM typed GROUP BY `id`, epoch, commit_lsn, ordinal
)
SELECT op, epoch, commit_lsn, ordinal,
  `id`,
  max(CASE WHEN op <> 'delete' AND NOT coalesce(array_contains(unchanged, 'name'), false) THEN named_struct('epoch', epoch, 'commit_lsn', commit_lsn, 'ordinal', ordinal, 'value', `name`) END) OVER (PARTITION BY `id` ORDER BY epoch, commit_lsn, ordinal)['value'] AS `name`,
  max(CASE WHEN op <> 'delete' AND NOT coalesce(array_contains(unchanged, 'city'), false) THEN named_struct('epoch', epoch, 'commit_lsn', commit_lsn, 'ordinal', ordinal, 'value', `city`) END) OVER (PARTITION BY `id` ORDER BY epoch, commit_lsn, ordinal)['value'] AS `city`
FROM changes;

CREATE STREAMING TABLE `customers`;

CREATE FLOW `customers_flow` AS AUTO CDC INTO `customers` FROM STREAM(`customers_changes`)
  KEYS (`id`) APPLY AS DELETE WHEN op = 'delete'
  SEQUENCE BY struct(epoch, commit_lsn, ordinal)
  COLUMNS * EXCEPT (op, epoch, commit_lsn, ordinal) STORED AS SCD TYPE 1;

CREATE MATERIALIZED VIEW `orders_changes` AS
WITH images AS (
  SELECT source_table, op, from_json(before, '`id` bigint, `customer` bigint, `amount` decimal(10,2), `at` string') AS old, from_json(after, '`id` bigint, `customer` bigint, `amount` decimal(10,2), `at` string') AS new, unchanged, epoch, commit_lsn, ordinal
  FROM raw.shop WHERE source_table = 'public.orders' AND op IN ('read', 'insert', 'update', 'delete')
), both_images AS (
  SELECT source_table, op, new AS image, unchanged, epoch, commit_lsn, ordinal FROM images WHERE op <> 'delete'
  UNION ALL
  SELECT source_table, 'delete' AS op, old AS image, CAST(NULL AS ARRAY<STRING>) AS unchanged, epoch, commit_lsn, ordinal
  FROM images WHERE op = 'delete' OR (op = 'update' AND old IS NOT NULL AND (images.old.`id` <> images.new.`id`))
), truncations AS (
  SELECT source_table, max(struct(epoch, commit_lsn, ordinal)) AS last FROM raw.shop
  WHERE source_table = 'public.orders' AND op = 'truncate' GROUP BY source_table
), typed AS (
  SELECT both_images.op, both_images.unchanged, both_images.epoch, both_images.commit_lsn, both_images.ordinal,
    both_images.image.`id` AS `id`,
    both_images.image.`customer` AS `customer`,
    both_images.image.`amount` AS `amount`,
    CAST(both_images.image.`at` AS TIMESTAMP) AS `at`
  FROM both_images LEFT JOIN truncations ON both_images.source_table = truncations.source_table
  WHERE truncations.last IS NULL OR struct(both_images.epoch, both_images.commit_lsn, both_images.ordinal) > truncations.last
), changes AS (
  SELECT `id`, epoch, commit_lsn, ordinal, max(op) AS op, max(unchanged) AS unchanged, max(`customer`) AS `customer`, max(`amount`) AS `amount`, max(`at`) AS `at` FROM typed GROUP BY `id`, epoch, commit_lsn, ordinal
)
SELECT op, epoch, commit_lsn, ordinal,
  `id`,
  `customer`,
  max(CASE WHEN op <> 'delete' AND NOT coalesce(array_contains(unchanged, 'amount'), false) THEN named_struct('epoch', epoch, 'commit_lsn', commit_lsn, 'ordinal', ordinal, 'value', `amount`) END) OVER (PARTITION BY `id` ORDER BY epoch, commit_lsn, ordinal)['value'] AS `amount`,
  `at`
FROM changes;

CREATE STREAMING TABLE `orders`;

CREATE FLOW `orders_flow` AS AUTO CDC INTO `orders` FROM STREAM(`orders_changes`)
  KEYS (`id`) APPLY AS DELETE WHEN op = 'delete'
  SEQUENCE BY struct(epoch, commit_lsn, ordinal)
  COLUMNS * EXCEPT (op, epoch, commit_lsn, ordinal) STORED AS SCD TYPE 1;
