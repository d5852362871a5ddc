-- Quality by day, metric and judge. `ppi_rate` and its interval are corrected by human labels if there are any. `weighted_mean` is the judge's
-- own score, with each answer of the base stream weighted by 1 / base_probability; `judge status` and `drift status` show plain means.
-- days UInt32 = 30: days back from today
-- project String = '': one project; empty for all
-- metric String = '': one metric; empty for all
SELECT
    day, project, metric, backend, fingerprint, n, round(mean, 4) AS weighted_mean, round(mean_low, 4) AS low, round(mean_high, 4) AS high,
    round(ppi_rate, 4) AS ppi_rate, round(ppi_low, 4) AS ppi_low, round(ppi_high, 4) AS ppi_high, labels
FROM quality_by_day
WHERE day > today() - {days:UInt32}
  AND ({project:String} = '' OR project = {project:String}) AND ({metric:String} = '' OR metric = {metric:String})
ORDER BY day DESC, project, metric, fingerprint;
