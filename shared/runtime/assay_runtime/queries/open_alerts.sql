-- Open alert episodes, most severe first and then by the size of the effect, with the command that acknowledges each.
-- project String = '': one project; empty for all
SELECT state, kind, project, service, metric, value, baseline, effect, interval, n, since, at, summary, acknowledge, alert_id
FROM open_episodes
WHERE {project:String} = '' OR project = {project:String}
ORDER BY severity DESC, abs(ifNull(effect, 0)) DESC, since;
