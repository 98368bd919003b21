-- A claimed amount stays in the contract until a settle pays it out. The claimer, a refund, the watch and each reading
-- of the ledger can raise a channel's claimed total, in any order, so the settle is recorded with the total itself.
create function batch_store_settle_claimed() returns trigger language plpgsql as $body$
begin
  -- An attempted settle may be in a ledger before this claim and pay out none of it.
  insert into batch_store_claims (principal, network, kind, receiver, token, payload)
    select new.principal, new.network, 'settle', new.receiver, new.token,
      jsonb_build_object('type', 'settle', 'receiver', new.receiver, 'token', new.token)
    where not exists (select 1 from batch_store_claims where state = 'open' and kind = 'settle'
      and principal = new.principal and network = new.network and receiver = new.receiver and token = new.token
      and attempts = 0 and begun_at <= clock_timestamp());
  return null;
end
$body$;
create trigger batch_store_claimed after update on batch_store_channels for each row
  when (new.delegated and new.total_claimed > old.total_claimed) execute function batch_store_settle_claimed();
-- A record made anew after a loss starts with the claimed total.
create trigger batch_store_claimed_before after insert on batch_store_channels for each row
  when (new.delegated and new.total_claimed > 0) execute function batch_store_settle_claimed();

-- Of claims that an earlier version never settled. A settle with nothing left to pay out ends at its simulation.
insert into batch_store_claims (principal, network, kind, receiver, token, payload)
  select distinct principal, network, 'settle', receiver, token,
    jsonb_build_object('type', 'settle', 'receiver', receiver, 'token', token)
  from batch_store_channels where delegated and total_claimed > 0;
