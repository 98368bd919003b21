-- How settlements end: by which transaction of the ledger, and what was answered to each attempt.

-- The transaction that ended it, by its inner hash: one transaction of the ledger ends one settlement.
alter table kernel_settlements add column ended_by text;
update kernel_settlements set ended_by = inner_hash where state = 'settled' or (state = 'failed' and ledger is not null);
create unique index kernel_settlements_ended_by on kernel_settlements (network, ended_by) where ended_by is not null;

-- How many attempts it has: whoever decides names the number it knew of.
alter table kernel_settlements add column attempt_count integer not null default 1 check (attempt_count > 0);
update kernel_settlements as s set attempt_count = a.number
  from (select settlement, max(number) as number from kernel_attempts group by settlement) as a
  where a.settlement = s.id and a.number > 1;

-- The result code of the last answer when that was a refusal, and whether a node ever took it or may have.
alter table kernel_attempts add column sent_code text;
alter table kernel_attempts add column taken boolean not null default false;
update kernel_attempts set taken = true where sent_status in ('Pending', 'Duplicate', 'Lost');
