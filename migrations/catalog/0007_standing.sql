-- Since when somebody stands for a listing: the recipient's own key, its origin, or a settled payment that counts for rank. Null: all that
-- there is of it is what payments claimed that may have cost their payers nothing; it comes after everything else. The time lets a page
-- that follows another know what stood when that was made.
alter table catalog_resources
  add column standing_at timestamptz,
  -- When what it costs changed last; null for a price that is its first.
  add column price_changed_at timestamptz;
update catalog_resources r set standing_at = 'epoch' where grade <> 'claimed' or ownership = 'proven'
  or exists (select 1 from catalog_activity a where a.resource_id = r.id and a.earned > 0);
update catalog_resources r set price_changed_at = o.at
  from (select resource_id, max(retired_at) as at from catalog_options group by resource_id) o where o.resource_id = r.id;
drop index catalog_resources_listed;
create index catalog_resources_listed on catalog_resources (id desc) include (state, verification, type, extensions, standing_at);
create index catalog_resources_standing on catalog_resources (id desc) include (state, verification, type, extensions, standing_at)
  where standing_at is not null;
create index catalog_resources_stood on catalog_resources (standing_at);

-- The payer and the resource's recipient are of one circle of payments: what they pay each other earns no rank.
alter table catalog_payers add column circle boolean not null default false;
