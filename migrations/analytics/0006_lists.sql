-- Lists of settlements for the pages: a filter by the caller's key, and an index for each order and filter that a page is read
-- in, so that a page by cursor costs its rows. `principal` is null for what was recorded before this column.
alter table analytics_settlements add column principal text;
create index analytics_settlements_principal on analytics_settlements (principal, occurred_at desc, id desc)
  where principal is not null and status <> 'open';
create index analytics_settlements_reason on analytics_settlements (error_reason, occurred_at desc, id desc)
  where error_reason is not null and status <> 'open';
create index analytics_settlements_origin on analytics_settlements (resource_origin, occurred_at desc, id desc)
  where resource_origin is not null and status <> 'open';
create index analytics_settlements_largest on analytics_settlements (asset, amount_meant desc, id desc) where status <> 'open';
