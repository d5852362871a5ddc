-- Insert deduplication is off: the tables alone make an event that is inserted again visible once.
--
-- With a window, the engine writes down that it has seen an insert before it moves the insert's part into place. When the move fails, or the
-- process dies in between, the note stays: the insert that is sent again is "a duplicate", succeeds, and its rows are nowhere.

ALTER TABLE ${base}.candidates MODIFY SETTING non_replicated_deduplication_window = 0;

ALTER TABLE ${base}.answers MODIFY SETTING non_replicated_deduplication_window = 0;

ALTER TABLE ${base}.feedback MODIFY SETTING non_replicated_deduplication_window = 0;

ALTER TABLE ${base}.capture_failures MODIFY SETTING non_replicated_deduplication_window = 0;

ALTER TABLE ${base}.scores MODIFY SETTING non_replicated_deduplication_window = 0;

ALTER TABLE ${base}.alerts MODIFY SETTING non_replicated_deduplication_window = 0;

ALTER TABLE ${base}.eval_runs MODIFY SETTING non_replicated_deduplication_window = 0;

ALTER TABLE ${base}.eval_results MODIFY SETTING non_replicated_deduplication_window = 0;

ALTER TABLE ${base}.eval_outcomes MODIFY SETTING non_replicated_deduplication_window = 0;
