-- The journal's own order. Transaction ids belong to a cluster: after a dump is restored into another one, new facts
-- sorted below the old ones and below every cursor. From now on a fact is given the next position once its transaction
-- has committed (kernel/facts/Facts.ts), and a cursor is the last position that was read: both are plain numbers that a dump
-- keeps.
alter table kernel_facts add column position bigint;
-- Whose fact it is, when it is about a settlement: its principal may follow it.
alter table kernel_facts add column principal text;

update kernel_facts f set position = n.position, principal = n.principal
from (
  select k.id, row_number() over (order by k.id) as position, s.principal
  from kernel_facts k left join kernel_settlements s on k.type like 'settlement.%' and s.id::text = k.subject
) n
where n.id = f.id;

alter table kernel_fact_cursors add column position bigint not null default 0;
-- Before the first fact that a consumer has not read, or, should the journal have been restored already, may not have
-- read: some are read twice rather than one never.
update kernel_fact_cursors c set position = coalesce(
  (select min(f.position) - 1 from kernel_facts f where (f.xid, f.id) > (c.xid, c.id) or f.id > c.id),
  (select max(position) from kernel_facts), 0);

drop index kernel_facts_order;
alter table kernel_facts drop column xid;
alter table kernel_fact_cursors drop column xid, drop column id;

create unique index kernel_facts_position on kernel_facts (position);
create index kernel_facts_unplaced on kernel_facts (id) where position is null;
create index kernel_facts_principal on kernel_facts (principal, position)
  where principal is not null and position is not null;
