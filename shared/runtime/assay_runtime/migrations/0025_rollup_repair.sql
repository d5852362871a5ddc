-- After a restore or a bulk load, `rollup_minute_repair` counted all hours that differ at once: ten million events of them needed more memory than
-- a small store has, each hour again. It counts the newest ones first now, half a million events at a time.

CREATE OR REPLACE VIEW ${base}.rollup_minute_differing
DEFINER = CURRENT_USER SQL SECURITY DEFINER
AS SELECT CAST(kind, 'Enum8(\'retrieval\' = 1, \'answer\' = 2, \'feedback\' = 3, \'failure\' = 4, \'tool_call\' = 5, \'server_event\' = 6)') AS kind, project, hour
FROM
(
    SELECT kind, project, hour, sum(held) OVER (ORDER BY hour DESC, kind, project ROWS UNBOUNDED PRECEDING) - held AS before
    FROM
    (
        SELECT kind, project, hour, sum(held) AS held
        FROM
        (
            SELECT 'retrieval' AS kind, project, toStartOfHour(event_time) AS hour, sum(reinterpretAsInt64(cityHash64(id))) AS difference, count() AS held
            FROM ${base}.candidates FINAL
            GROUP BY project, hour
            UNION ALL
            SELECT 'answer' AS kind, project, toStartOfHour(event_time) AS hour, sum(reinterpretAsInt64(cityHash64(id))) AS difference, count() AS held
            FROM ${base}.answers FINAL
            GROUP BY project, hour
            UNION ALL
            SELECT 'feedback' AS kind, project, toStartOfHour(event_time) AS hour, sum(reinterpretAsInt64(cityHash64(id))) AS difference, count() AS held
            FROM ${base}.feedback FINAL
            GROUP BY project, hour
            UNION ALL
            SELECT 'tool_call' AS kind, project, toStartOfHour(event_time) AS hour, sum(reinterpretAsInt64(cityHash64(id))) AS difference, count() AS held
            FROM ${base}.tool_calls FINAL
            GROUP BY project, hour
            UNION ALL
            SELECT 'server_event' AS kind, project, toStartOfHour(event_time) AS hour, sum(reinterpretAsInt64(cityHash64(id))) AS difference, count() AS held
            FROM ${base}.server_events FINAL
            GROUP BY project, hour
            UNION ALL
            SELECT
                'failure' AS kind, project, toStartOfHour(created_at) AS hour,
                sum(reinterpretAsInt64(cityHash64(failure_id, created_at))) AS difference, count() AS held
            FROM ${base}.capture_failures FINAL
            GROUP BY project, hour
            UNION ALL
            SELECT
                toString(kind) AS kind, project, toStartOfHour(minute) AS hour,
                toInt64(countIf(NOT isFinite(latency_ms_sum + top_score_sum))) - sum(fingerprint) AS difference, toUInt64(0) AS held
            FROM ${base}.rollup_minute FINAL
            GROUP BY kind, project, hour
        )
        GROUP BY kind, project, hour
        HAVING sum(difference) != 0
    )
)
WHERE before < 500000
COMMENT 'The newest hours of rollup_minute in which something else was counted than the tables hold, with at most about half a million events. Reads all of both.';
