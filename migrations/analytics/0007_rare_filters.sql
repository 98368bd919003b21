-- Filters that hold together for few settlements, or for none: without these a list reads all that one of them keeps. Only what
-- did not settle is in them.
create index analytics_settlements_reason_scheme on analytics_settlements (error_reason, scheme, occurred_at desc, id desc)
  where error_reason is not null and status <> 'open';
create index analytics_settlements_unsettled on analytics_settlements (status, asset, scheme, amount_meant desc, id desc)
  where status in ('unknown', 'failed');
