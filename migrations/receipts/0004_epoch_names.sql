-- An epoch's name is random: no two lives of a log have one name. The first has none.
alter table receipts_epochs add column name text unique;
update receipts_epochs set name = epoch::text where epoch > 1;
-- Of which log previous_size and previous_root are.
alter table receipts_epochs add column previous_origin text;
-- Why nothing of it is signed any more: a witness has seen another story.
alter table receipts_epochs add column fork text;
-- An operator's reason to begin the next one, and the checkpoint that is known to be published.
alter table receipts_epochs add column ended text;
alter table receipts_epochs add column published jsonb;
