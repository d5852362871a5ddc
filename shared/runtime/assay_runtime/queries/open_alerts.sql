-- Open alert episodes, most severe first, with the command that acknowledges each.
-- project String = '': one project; empty for all
SELECT state, kind, project, service, metric, value, baseline, effect, interval, n, since, at, summary, acknowledge, alert_id
FROM open_episodes
WHERE {project:String} = '' OR project = {project:String}
ORDER BY severity DESC, since;
