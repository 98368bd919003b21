-- Beside replicas of version 0.1, which write settlements without the columns that came later. What they leave out is
-- put in here, and what they put in the wrong place is put right, in their own transactions, so that the books are
-- right whoever of the two records a payment and whoever ends it. Later programs do all of it themselves, and nothing
-- here does anything to what they write; a later version drops it.

-- Version 0.1 names one principal. All keyless callers own their payments together (0007): otherwise who was answered
-- by an old replica, pending, and asks a new one is a stranger to his own payment.
create function kernel_settlement_of_version_01() returns trigger language plpgsql as $body$
begin
  new.budget_principal := new.principal;
  if starts_with(new.principal, 'ip:') then
    new.principal := 'anonymous';
  end if;
  return new;
end
$body$;
create trigger kernel_settlements_of_version_01 before insert on kernel_settlements
  for each row when (new.budget_principal is null) execute function kernel_settlement_of_version_01();

-- An adoption or an end by version 0.1 does not say which transaction ended it; it knows of its own alone.
create function kernel_ended_by_version_01() returns trigger language plpgsql as $body$
begin
  new.ended_by := new.inner_hash;
  return new;
end
$body$;
create trigger kernel_settlements_ended_by_version_01 before insert or update on kernel_settlements
  for each row when (new.state = 'settled' and new.ended_by is null) execute function kernel_ended_by_version_01();

-- Version 0.1 ends a settlement in the budget of its owner, which for keyless callers is nobody's: the caller's own row
-- would keep the reservation for ever and never be charged. At the commit of an end it is looked whether this
-- transaction has changed that row, in itself or in a savepoint; when it has not, the row is settled here. The day's
-- total is no matter: every version finds it.
create function kernel_budget_of_version_01() returns trigger language plpgsql as $body$
declare
  was_open constant boolean := old.state in ('prepared', 'submitted');
  given_back constant bigint := case when was_open then old.budget_stroops else 0 end;
  charged_before constant bigint := case when was_open then 0 else coalesce(old.fee_charged_stroops, 0) end;
  mine constant bigint := pg_current_xact_id()::text::bigint;
begin
  -- A row knows the lower half of the transaction that wrote it: it is the nearest to this one that ends in that half.
  update kernel_sponsor_budget as b set reserved_stroops = b.reserved_stroops - given_back,
    committed_stroops = b.committed_stroops + coalesce(new.fee_charged_stroops, 0) - charged_before
  where b.day = new.budget_day and b.principal = new.budget_principal
    and pg_xact_status((mine - 2147483648
      + mod(mod(b.xmin::text::bigint - mine, 4294967296) + 6442450944, 4294967296))::text::xid8)
      is distinct from 'in progress';
  return null;
end
$body$;
create constraint trigger kernel_settlements_budget_of_version_01 after update on kernel_settlements
  deferrable initially deferred for each row
  when (new.budget_principal <> new.principal and new.state not in ('prepared', 'submitted')
    and (old.state in ('prepared', 'submitted') or old.fee_charged_stroops is distinct from new.fee_charged_stroops))
  execute function kernel_budget_of_version_01();

-- Whose fact it is (0005), for whoever follows his own.
create function kernel_fact_of_version_01() returns trigger language plpgsql as $body$
begin
  new.principal := (select principal from kernel_settlements where id = new.subject::uuid);
  return new;
end
$body$;
create trigger kernel_facts_of_version_01 before insert on kernel_facts
  for each row when (new.principal is null and starts_with(new.type, 'settlement.')
    and new.subject ~ '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$')
  execute function kernel_fact_of_version_01();

-- That a node took an attempt, or may have (0008): without it a new replica may give up what can still land.
create function kernel_attempt_of_version_01() returns trigger language plpgsql as $body$
begin
  new.taken := true;
  return new;
end
$body$;
create trigger kernel_attempts_of_version_01 before update on kernel_attempts
  for each row when (new.sent_status in ('Pending', 'Duplicate', 'Lost') and not new.taken)
  execute function kernel_attempt_of_version_01();

-- How many attempts there are (0008): a decision that knew of fewer changes nothing.
create function kernel_attempt_count_of_version_01() returns trigger language plpgsql as $body$
begin
  update kernel_settlements set attempt_count = new.number where id = new.settlement and attempt_count < new.number;
  return null;
end
$body$;
create trigger kernel_attempts_counted_of_version_01 after insert on kernel_attempts
  for each row when (new.number > 1) execute function kernel_attempt_count_of_version_01();
