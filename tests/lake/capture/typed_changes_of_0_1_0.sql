WITH completions AS (
  SELECT source_table, max(struct(epoch, commit_lsn, ordinal)) AS last FROM RAW
  WHERE source_table = 'TABLE' AND op = 'complete' GROUP BY source_table
), truncations AS (
  SELECT raw.source_table,
    max(CASE WHEN raw.op = 'truncate' AND (raw.after IS NULL OR struct(raw.epoch, raw.commit_lsn, raw.ordinal) < completions.last) THEN struct(raw.epoch, raw.commit_lsn, raw.ordinal) END) AS last,
    min(CASE WHEN raw.after IS NOT NULL AND (completions.last IS NULL OR struct(raw.epoch, raw.commit_lsn, raw.ordinal) > completions.last) THEN struct(raw.epoch, raw.commit_lsn, raw.ordinal) END) AS incomplete
  FROM RAW AS raw LEFT JOIN completions ON raw.source_table = completions.source_table
  WHERE raw.source_table = 'TABLE' AND raw.op IN ('truncate', 'incomplete') GROUP BY raw.source_table
), forms AS (
  SELECT raw.source_table, max(CASE WHEN raw.op = 'hold' THEN raw.after END) AS reason,
    max(CASE WHEN raw.op = 'schema' AND contains(raw.after, '"form": "FORM"') THEN 1 ELSE 0 END) AS known
  FROM RAW AS raw LEFT JOIN truncations ON raw.source_table = truncations.source_table
  WHERE raw.source_table = 'TABLE' AND raw.op IN ('schema', 'hold') AND (truncations.last IS NULL OR struct(raw.epoch, raw.commit_lsn, raw.ordinal) > truncations.last) AND (truncations.incomplete IS NULL OR struct(raw.epoch, raw.commit_lsn, raw.ordinal) < truncations.incomplete)
  GROUP BY raw.source_table
), images AS (
  SELECT source_table, op, from_json(before, '`id` int, `a` int') AS old, from_json(after, '`id` int, `a` int') AS new, unchanged AS left_out, epoch, commit_lsn, ordinal
  FROM RAW WHERE source_table = 'TABLE' AND op IN ('read', 'insert', 'update', 'delete')
), both_images AS (
  SELECT source_table, op, new AS image, left_out, epoch, commit_lsn, ordinal FROM images WHERE op <> 'delete'
  UNION ALL
  SELECT source_table, 'delete' AS op, old AS image, CAST(NULL AS ARRAY<STRING>) AS left_out, epoch, commit_lsn, ordinal
  FROM images WHERE op = 'delete' OR (op = 'update' AND old IS NOT NULL AND (images.old.`id` <> images.new.`id`))
), typed AS (
  SELECT both_images.op, both_images.left_out, both_images.epoch, both_images.commit_lsn, both_images.ordinal,
    both_images.image.`id` AS `id`,
    both_images.image.`a` AS `a`
  FROM both_images LEFT JOIN truncations ON both_images.source_table = truncations.source_table
    LEFT JOIN forms ON both_images.source_table = forms.source_table
  WHERE (truncations.last IS NULL OR struct(both_images.epoch, both_images.commit_lsn, both_images.ordinal) > truncations.last) AND (truncations.incomplete IS NULL OR struct(both_images.epoch, both_images.commit_lsn, both_images.ordinal) < truncations.incomplete)
    AND CASE WHEN forms.reason IS NOT NULL THEN CAST(raise_error(forms.reason) AS BOOLEAN)
      WHEN forms.known = 0 AND truncations.incomplete IS NOT NULL THEN CAST(raise_error('TABLE is being read again, since it changed at the source: refresh when metastore capture status says that its snapshot is done') AS BOOLEAN)
      WHEN forms.known = 0 THEN CAST(raise_error('the columns of TABLE changed at the source: print its definitions again, by metastore capture definitions --into RAW --table TABLE') AS BOOLEAN) ELSE true END
), changes AS (
  SELECT `id`, epoch, commit_lsn, ordinal, max(op) AS op, max(left_out) AS left_out, max(`a`) AS `a` FROM typed GROUP BY `id`, epoch, commit_lsn, ordinal
)
SELECT op, epoch, commit_lsn, ordinal,
  `id`,
  `a`
FROM changes
