-- Printed by: metastore capture definitions --into raw.shop

CREATE MATERIALIZED VIEW `customers_changes` AS
SELECT op, epoch, commit_lsn, ordinal,
  `id`,
  max(CASE WHEN op <> 'delete' AND NOT coalesce(array_contains(unchanged, 'name'), false) THEN named_struct('epoch', epoch, 'commit_lsn', commit_lsn, 'ordinal', ordinal, 'value', `name`) END) OVER (PARTITION BY `id` ORDER BY epoch, commit_lsn, ordinal)['value'] AS `name`,
  max(CASE WHEN op <> 'delete' AND NOT coalesce(array_contains(unchanged, 'city'), false) THEN named_struct('epoch', epoch, 'commit_lsn', commit_lsn, 'ordinal', ordinal, 'value', `city`) END) OVER (PARTITION BY `id` ORDER BY epoch, commit_lsn, ordinal)['value'] AS `city`
FROM (
  SELECT `id`, epoch, commit_lsn, ordinal, max(op) AS op, max(unchanged) AS unchanged, max(`name`) AS `name`, max(`city`) AS `city`
  FROM (
  SELECT all_changes.op, all_changes.unchanged, all_changes.epoch, all_changes.commit_lsn, all_changes.ordinal,
    from_json(body, '`id` bigint, `name` string, `city` string')['id'] AS `id`,
    from_json(body, '`id` bigint, `name` string, `city` string')['name'] AS `name`,
    from_json(body, '`id` bigint, `name` string, `city` string')['city'] AS `city`
  FROM (
    SELECT op, after AS body, unchanged, epoch, commit_lsn, ordinal FROM raw.shop
    WHERE source_table = 'public.customers' AND op IN ('insert', 'update', 'read')
    UNION ALL
    SELECT 'delete' AS op, before AS body, CAST(NULL AS ARRAY<STRING>) AS unchanged, epoch, commit_lsn, ordinal
    FROM raw.shop
    WHERE source_table = 'public.customers' AND (op = 'delete' OR (op = 'update' AND before IS NOT NULL AND (from_json(before, '`id` bigint, `name` string, `city` string')['id'] <> from_json(after, '`id` bigint, `name` string, `city` string')['id'])))
  ) AS all_changes LEFT JOIN (
    SELECT source_table, max(struct(epoch, commit_lsn, ordinal)) AS last FROM raw.shop
    WHERE source_table = 'public.customers' AND op = 'truncate' GROUP BY source_table
  ) AS truncated ON truncated.source_table = 'public.customers'
  WHERE truncated.last IS NULL OR struct(all_changes.epoch, all_changes.commit_lsn, all_changes.ordinal) > truncated.last
  ) AS typed GROUP BY `id`, epoch, commit_lsn, ordinal
) AS changes;

CREATE STREAMING TABLE `customers`;

CREATE FLOW `customers_flow` AS AUTO CDC INTO `customers` FROM STREAM(`customers_changes`)
  KEYS (`id`) APPLY AS DELETE WHEN op = 'delete'
  SEQUENCE BY struct(epoch, commit_lsn, ordinal)
  COLUMNS * EXCEPT (op, epoch, commit_lsn, ordinal) STORED AS SCD TYPE 1;

CREATE MATERIALIZED VIEW `orders_changes` AS
SELECT op, epoch, commit_lsn, ordinal,
  `id`,
  `customer`,
  max(CASE WHEN op <> 'delete' AND NOT coalesce(array_contains(unchanged, 'amount'), false) THEN named_struct('epoch', epoch, 'commit_lsn', commit_lsn, 'ordinal', ordinal, 'value', `amount`) END) OVER (PARTITION BY `id` ORDER BY epoch, commit_lsn, ordinal)['value'] AS `amount`,
  `at`
FROM (
  SELECT `id`, epoch, commit_lsn, ordinal, max(op) AS op, max(unchanged) AS unchanged, max(`customer`) AS `customer`, max(`amount`) AS `amount`, max(`at`) AS `at`
  FROM (
  SELECT all_changes.op, all_changes.unchanged, all_changes.epoch, all_changes.commit_lsn, all_changes.ordinal,
    from_json(body, '`id` bigint, `customer` bigint, `amount` decimal(10,2), `at` string')['id'] AS `id`,
    from_json(body, '`id` bigint, `customer` bigint, `amount` decimal(10,2), `at` string')['customer'] AS `customer`,
    from_json(body, '`id` bigint, `customer` bigint, `amount` decimal(10,2), `at` string')['amount'] AS `amount`,
    CAST(from_json(body, '`id` bigint, `customer` bigint, `amount` decimal(10,2), `at` string')['at'] AS TIMESTAMP) AS `at`
  FROM (
    SELECT op, after AS body, unchanged, epoch, commit_lsn, ordinal FROM raw.shop
    WHERE source_table = 'public.orders' AND op IN ('insert', 'update', 'read')
    UNION ALL
    SELECT 'delete' AS op, before AS body, CAST(NULL AS ARRAY<STRING>) AS unchanged, epoch, commit_lsn, ordinal
    FROM raw.shop
    WHERE source_table = 'public.orders' AND (op = 'delete' OR (op = 'update' AND before IS NOT NULL AND (from_json(before, '`id` bigint, `customer` bigint, `amount` decimal(10,2), `at` string')['id'] <> from_json(after, '`id` bigint, `customer` bigint, `amount` decimal(10,2), `at` string')['id'])))
  ) AS all_changes LEFT JOIN (
    SELECT source_table, max(struct(epoch, commit_lsn, ordinal)) AS last FROM raw.shop
    WHERE source_table = 'public.orders' AND op = 'truncate' GROUP BY source_table
  ) AS truncated ON truncated.source_table = 'public.orders'
  WHERE truncated.last IS NULL OR struct(all_changes.epoch, all_changes.commit_lsn, all_changes.ordinal) > truncated.last
  ) AS typed GROUP BY `id`, epoch, commit_lsn, ordinal
) AS changes;

CREATE STREAMING TABLE `orders`;

CREATE FLOW `orders_flow` AS AUTO CDC INTO `orders` FROM STREAM(`orders_changes`)
  KEYS (`id`) APPLY AS DELETE WHEN op = 'delete'
  SEQUENCE BY struct(epoch, commit_lsn, ordinal)
  COLUMNS * EXCEPT (op, epoch, commit_lsn, ordinal) STORED AS SCD TYPE 1;
