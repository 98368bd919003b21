-- The claim of a channel under its name in the code, `required`, beside `wanted` (0006), which replicas of the previous
-- version still read and write: whichever pair a statement names is copied to the other. Only statements that name one
-- of the columns do that, once a minute; no payment does. A later version drops `wanted_by` and `wanted_until`, and
-- this trigger with them.
alter table kernel_channels
  add column required_by text,
  add column required_until timestamptz not null default clock_timestamp() + interval '3 minutes';
update kernel_channels set required_by = wanted_by, required_until = wanted_until;

create function kernel_channel_claim() returns trigger language plpgsql as $body$
begin
  if tg_op = 'INSERT' then
    if new.required_by is null then
      new.required_by := new.wanted_by;
      new.required_until := new.wanted_until;
    else
      new.wanted_by := new.required_by;
      new.wanted_until := new.required_until;
    end if;
  elsif (new.required_by, new.required_until) is distinct from (old.required_by, old.required_until) then
    new.wanted_by := new.required_by;
    new.wanted_until := new.required_until;
  else
    new.required_by := new.wanted_by;
    new.required_until := new.wanted_until;
  end if;
  return new;
end
$body$;
create trigger kernel_channels_claim before insert or update of required_by, required_until, wanted_by, wanted_until
  on kernel_channels for each row execute function kernel_channel_claim();
