-- How far the log is stored, and how long ago that was said.
SELECT watermark, updated_at, dateDiff('second', updated_at, now64(3)) AS seconds_ago
FROM watermark;
