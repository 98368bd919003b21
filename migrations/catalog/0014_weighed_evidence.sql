-- Evidence has a weight. A listing whose words only payments carried is established when those payments risked enough, or thirty days
-- after the first of them; one whose words its origin served or its recipient's key declared is so at once.
alter table catalog_resources
  -- When it was established otherwise than by age. Null: thirty days after `standing_at`.
  add column established_at timestamptz;
-- Naming a recipient is no evidence for words.
update catalog_resources r set standing_at = null where grade = 'claimed' and not exists (
  select 1 from catalog_activity a where a.resource_id = r.id and a.earned > 0);
update catalog_resources set established_at = standing_at where grade <> 'claimed' and standing_at is not null;
-- What one payer risked under one claim, its largest payment; in ten-millionths of a dollar.
alter table catalog_claim_payers
  add column risked numeric not null default 0,
  add column first_at timestamptz;
update catalog_claim_payers set first_at = at;
alter table catalog_claim_payers alter column first_at set not null;
-- What payers that count risked for a resource, each up to a bound; in ten-millionths of a dollar.
alter table catalog_payers add column risked numeric not null default 0;
alter table catalog_activity add column risked numeric not null default 0;
