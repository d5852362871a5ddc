-- The watermark up to which the log is stored, and its age.
SELECT watermark, updated_at, dateDiff('second', updated_at, now64(3)) AS seconds_ago
FROM watermark;
