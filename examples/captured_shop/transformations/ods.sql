-- Printed by: metastore capture definitions --into raw.shop

CREATE MATERIALIZED VIEW `customers_as_sent`
  TBLPROPERTIES ('primary-key' = 'id,epoch,commit_lsn,ordinal', 'bucket-key' = 'id') AS
WITH completions AS (
  SELECT source_table, max(struct(epoch, commit_lsn, ordinal)) AS last FROM raw.shop
  WHERE source_table = 'public.customers' AND op = 'complete' GROUP BY source_table
), truncations AS (
  SELECT raw.source_table,
    max(CASE WHEN raw.op = 'truncate' AND (raw.after IS NULL OR struct(raw.epoch, raw.commit_lsn, raw.ordinal) < completions.last) THEN struct(raw.epoch, raw.commit_lsn, raw.ordinal) END) AS last,
    min(CASE WHEN raw.after IS NOT NULL AND (completions.last IS NULL OR struct(raw.epoch, raw.commit_lsn, raw.ordinal) > completions.last) THEN struct(raw.epoch, raw.commit_lsn, raw.ordinal) END) AS incomplete
  FROM raw.shop AS raw LEFT JOIN completions ON raw.source_table = completions.source_table
  WHERE raw.source_table = 'public.customers' AND raw.op IN ('truncate', 'incomplete') GROUP BY raw.source_table
), forms AS (
  SELECT raw.source_table, max(CASE WHEN raw.op = 'hold' THEN raw.after END) AS reason,
    max(CASE WHEN raw.op = 'schema' AND contains(raw.after, '"form": "7dd6d39aa628c464"') THEN 1 ELSE 0 END) AS known
  FROM raw.shop AS raw LEFT JOIN truncations ON raw.source_table = truncations.source_table
  WHERE raw.source_table = 'public.customers' AND raw.op IN ('schema', 'hold') AND (truncations.last IS NULL OR struct(raw.epoch, raw.commit_lsn, raw.ordinal) > truncations.last) AND (truncations.incomplete IS NULL OR struct(raw.epoch, raw.commit_lsn, raw.ordinal) < truncations.incomplete)
  GROUP BY raw.source_table
), images AS (
  SELECT source_table, op, from_json(before, '`id` bigint, `name` string, `city` string, misfit string', map('columnNameOfCorruptRecord', 'misfit', 'maxStringLen', '2147483647')) AS old, from_json(after, '`id` bigint, `name` string, `city` string, misfit string', map('columnNameOfCorruptRecord', 'misfit', 'maxStringLen', '2147483647')) AS new, unchanged AS left_out, epoch, commit_lsn, ordinal
  FROM raw.shop WHERE source_table = 'public.customers' AND op IN ('read', 'insert', 'update', 'delete')
), both_images AS (
  SELECT source_table, CASE WHEN side = 'old' THEN 'delete' ELSE op END AS op,
    CASE WHEN side = 'old' THEN old ELSE new END AS image,
    CASE WHEN side = 'new' THEN left_out END AS left_out, epoch, commit_lsn, ordinal
  FROM images LATERAL VIEW explode(CASE WHEN op = 'delete' THEN array('old') WHEN op = 'update' AND old IS NOT NULL AND (NOT (images.old.`id` <=> images.new.`id`)) THEN array('new', 'old') ELSE array('new') END) sides AS side
), typed AS (
  SELECT both_images.op, both_images.left_out, both_images.epoch, both_images.commit_lsn, both_images.ordinal,
    both_images.image.`id` AS `id`,
    both_images.image.`name` AS `name`,
    both_images.image.`city` AS `city`
  FROM both_images LEFT JOIN truncations ON both_images.source_table = truncations.source_table
    LEFT JOIN forms ON both_images.source_table = forms.source_table
  WHERE CASE WHEN NOT ((truncations.last IS NULL OR struct(both_images.epoch, both_images.commit_lsn, both_images.ordinal) > truncations.last) AND (truncations.incomplete IS NULL OR struct(both_images.epoch, both_images.commit_lsn, both_images.ordinal) < truncations.incomplete)) THEN false
      WHEN forms.reason IS NOT NULL THEN CAST(raise_error(forms.reason) AS BOOLEAN)
      WHEN forms.known = 0 AND truncations.incomplete IS NOT NULL THEN CAST(raise_error('public.customers is being read again, since it changed at the source: refresh when metastore capture status says that its snapshot is done') AS BOOLEAN)
      WHEN forms.known = 0 THEN CAST(raise_error('the columns of public.customers changed at the source: print its definitions again, by metastore capture definitions --into raw.shop --table public.customers') AS BOOLEAN)
      ELSE CASE WHEN CASE WHEN both_images.op = 'delete' THEN both_images.image.`id` IS NULL ELSE both_images.image.misfit IS NOT NULL END THEN CAST(raise_error(concat('a change of public.customers has a value that the type of its column does not hold. To keep such changes apart and go on, print its definitions by metastore capture definitions --misfits quarantine --into raw.shop --table public.customers. The first one found has the position (', CAST(both_images.epoch AS STRING), ', ', CAST(both_images.commit_lsn AS STRING), ', ', CAST(both_images.ordinal AS STRING), ')')) AS BOOLEAN) ELSE true END END
), changes AS (
  SELECT `id`, epoch, commit_lsn, ordinal, max(op) AS op, max(left_out) AS left_out, max(`name`) AS `name`, max(`city`) AS `city` FROM typed GROUP BY `id`, epoch, commit_lsn, ordinal
)
SELECT * FROM changes;

CREATE MATERIALIZED VIEW `customers_changes` AS
WITH filled AS (
  SELECT *,
  lead(op) OVER (PARTITION BY `id` ORDER BY epoch, commit_lsn, ordinal) IS NOT NULL AS has_later,
  max(CASE WHEN op = 'delete' OR NOT coalesce(array_contains(left_out, 'name'), false) THEN named_struct('epoch', epoch, 'commit_lsn', commit_lsn, 'ordinal', ordinal, 'op', op, 'value', `name`) END) OVER (PARTITION BY `id` ORDER BY epoch, commit_lsn, ordinal) AS known_1,
  max(CASE WHEN op = 'delete' OR NOT coalesce(array_contains(left_out, 'city'), false) THEN named_struct('epoch', epoch, 'commit_lsn', commit_lsn, 'ordinal', ordinal, 'op', op, 'value', `city`) END) OVER (PARTITION BY `id` ORDER BY epoch, commit_lsn, ordinal) AS known_2
  FROM `customers_as_sent`
)
SELECT op, epoch, commit_lsn, ordinal,
  `id`,
  known_1['value'] AS `name`,
  known_2['value'] AS `city`
FROM filled WHERE CASE WHEN op = 'delete' OR known_1['op'] <> 'delete' THEN true WHEN has_later THEN false ELSE CAST(raise_error('an update of public.customers left out its large value name, and no earlier row of the raw table has it: let the source send the row again, by an update that changes the value or by another snapshot; REPLICA IDENTITY FULL of a table in Postgres prevents this') AS BOOLEAN) END AND CASE WHEN op = 'delete' OR known_2['op'] <> 'delete' THEN true WHEN has_later THEN false ELSE CAST(raise_error('an update of public.customers left out its large value city, and no earlier row of the raw table has it: let the source send the row again, by an update that changes the value or by another snapshot; REPLICA IDENTITY FULL of a table in Postgres prevents this') AS BOOLEAN) END;

CREATE STREAMING TABLE `customers`;

CREATE FLOW `customers_flow` AS AUTO CDC INTO `customers` FROM STREAM(`customers_changes`)
  KEYS (`id`) APPLY AS DELETE WHEN op = 'delete'
  SEQUENCE BY struct(epoch, commit_lsn, ordinal)
  COLUMNS * EXCEPT (op, epoch, commit_lsn, ordinal) STORED AS SCD TYPE 1;

CREATE MATERIALIZED VIEW `orders_as_sent`
  TBLPROPERTIES ('primary-key' = 'id,epoch,commit_lsn,ordinal', 'bucket-key' = 'id') AS
WITH completions AS (
  SELECT source_table, max(struct(epoch, commit_lsn, ordinal)) AS last FROM raw.shop
  WHERE source_table = 'public.orders' AND op = 'complete' GROUP BY source_table
), truncations AS (
  SELECT raw.source_table,
    max(CASE WHEN raw.op = 'truncate' AND (raw.after IS NULL OR struct(raw.epoch, raw.commit_lsn, raw.ordinal) < completions.last) THEN struct(raw.epoch, raw.commit_lsn, raw.ordinal) END) AS last,
    min(CASE WHEN raw.after IS NOT NULL AND (completions.last IS NULL OR struct(raw.epoch, raw.commit_lsn, raw.ordinal) > completions.last) THEN struct(raw.epoch, raw.commit_lsn, raw.ordinal) END) AS incomplete
  FROM raw.shop AS raw LEFT JOIN completions ON raw.source_table = completions.source_table
  WHERE raw.source_table = 'public.orders' AND raw.op IN ('truncate', 'incomplete') GROUP BY raw.source_table
), forms AS (
  SELECT raw.source_table, max(CASE WHEN raw.op = 'hold' THEN raw.after END) AS reason,
    max(CASE WHEN raw.op = 'schema' AND contains(raw.after, '"form": "46feaef70f91c464"') THEN 1 ELSE 0 END) AS known
  FROM raw.shop AS raw LEFT JOIN truncations ON raw.source_table = truncations.source_table
  WHERE raw.source_table = 'public.orders' AND raw.op IN ('schema', 'hold') AND (truncations.last IS NULL OR struct(raw.epoch, raw.commit_lsn, raw.ordinal) > truncations.last) AND (truncations.incomplete IS NULL OR struct(raw.epoch, raw.commit_lsn, raw.ordinal) < truncations.incomplete)
  GROUP BY raw.source_table
), images AS (
  SELECT source_table, op, from_json(before, '`id` bigint, `customer` bigint, `amount` decimal(10,2), `at` string, misfit string', map('columnNameOfCorruptRecord', 'misfit', 'maxStringLen', '2147483647')) AS old, from_json(after, '`id` bigint, `customer` bigint, `amount` decimal(10,2), `at` string, misfit string', map('columnNameOfCorruptRecord', 'misfit', 'maxStringLen', '2147483647')) AS new, unchanged AS left_out, epoch, commit_lsn, ordinal
  FROM raw.shop WHERE source_table = 'public.orders' AND op IN ('read', 'insert', 'update', 'delete')
), both_images AS (
  SELECT source_table, CASE WHEN side = 'old' THEN 'delete' ELSE op END AS op,
    CASE WHEN side = 'old' THEN old ELSE new END AS image,
    CASE WHEN side = 'new' THEN left_out END AS left_out, epoch, commit_lsn, ordinal
  FROM images LATERAL VIEW explode(CASE WHEN op = 'delete' THEN array('old') WHEN op = 'update' AND old IS NOT NULL AND (NOT (images.old.`id` <=> images.new.`id`)) THEN array('new', 'old') ELSE array('new') END) sides AS side
), typed AS (
  SELECT both_images.op, both_images.left_out, both_images.epoch, both_images.commit_lsn, both_images.ordinal,
    both_images.image.`id` AS `id`,
    both_images.image.`customer` AS `customer`,
    both_images.image.`amount` AS `amount`,
    try_cast(both_images.image.`at` AS TIMESTAMP) AS `at`
  FROM both_images LEFT JOIN truncations ON both_images.source_table = truncations.source_table
    LEFT JOIN forms ON both_images.source_table = forms.source_table
  WHERE CASE WHEN NOT ((truncations.last IS NULL OR struct(both_images.epoch, both_images.commit_lsn, both_images.ordinal) > truncations.last) AND (truncations.incomplete IS NULL OR struct(both_images.epoch, both_images.commit_lsn, both_images.ordinal) < truncations.incomplete)) THEN false
      WHEN forms.reason IS NOT NULL THEN CAST(raise_error(forms.reason) AS BOOLEAN)
      WHEN forms.known = 0 AND truncations.incomplete IS NOT NULL THEN CAST(raise_error('public.orders is being read again, since it changed at the source: refresh when metastore capture status says that its snapshot is done') AS BOOLEAN)
      WHEN forms.known = 0 THEN CAST(raise_error('the columns of public.orders changed at the source: print its definitions again, by metastore capture definitions --into raw.shop --table public.orders') AS BOOLEAN)
      ELSE CASE WHEN CASE WHEN both_images.op = 'delete' THEN both_images.image.`id` IS NULL ELSE both_images.image.misfit IS NOT NULL OR (both_images.image.`at` IS NOT NULL AND try_cast(both_images.image.`at` AS TIMESTAMP) IS NULL) END THEN CAST(raise_error(concat('a change of public.orders has a value that the type of its column does not hold. To keep such changes apart and go on, print its definitions by metastore capture definitions --misfits quarantine --into raw.shop --table public.orders. The first one found has the position (', CAST(both_images.epoch AS STRING), ', ', CAST(both_images.commit_lsn AS STRING), ', ', CAST(both_images.ordinal AS STRING), ')')) AS BOOLEAN) ELSE true END END
), changes AS (
  SELECT `id`, epoch, commit_lsn, ordinal, max(op) AS op, max(left_out) AS left_out, max(`customer`) AS `customer`, max(`amount`) AS `amount`, max(`at`) AS `at` FROM typed GROUP BY `id`, epoch, commit_lsn, ordinal
)
SELECT * FROM changes;

CREATE MATERIALIZED VIEW `orders_changes` AS
WITH filled AS (
  SELECT *,
  lead(op) OVER (PARTITION BY `id` ORDER BY epoch, commit_lsn, ordinal) IS NOT NULL AS has_later,
  max(CASE WHEN op = 'delete' OR NOT coalesce(array_contains(left_out, 'amount'), false) THEN named_struct('epoch', epoch, 'commit_lsn', commit_lsn, 'ordinal', ordinal, 'op', op, 'value', `amount`) END) OVER (PARTITION BY `id` ORDER BY epoch, commit_lsn, ordinal) AS known_1
  FROM `orders_as_sent`
)
SELECT op, epoch, commit_lsn, ordinal,
  `id`,
  `customer`,
  known_1['value'] AS `amount`,
  `at`
FROM filled WHERE CASE WHEN op = 'delete' OR known_1['op'] <> 'delete' THEN true WHEN has_later THEN false ELSE CAST(raise_error('an update of public.orders left out its large value amount, and no earlier row of the raw table has it: let the source send the row again, by an update that changes the value or by another snapshot; REPLICA IDENTITY FULL of a table in Postgres prevents this') AS BOOLEAN) END;

CREATE STREAMING TABLE `orders`;

CREATE FLOW `orders_flow` AS AUTO CDC INTO `orders` FROM STREAM(`orders_changes`)
  KEYS (`id`) APPLY AS DELETE WHEN op = 'delete'
  SEQUENCE BY struct(epoch, commit_lsn, ordinal)
  COLUMNS * EXCEPT (op, epoch, commit_lsn, ordinal) STORED AS SCD TYPE 1;
