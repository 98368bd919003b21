-- What operators did, by command, page, API or signal. Two rows each: one before the act, with the outcome `asked`, and
-- one after it that names the first. Rows are only added; those of more than thirty days may leave by retention.
create table kernel_operator_acts (
  id bigint generated always as identity primary key,
  at timestamptz not null default clock_timestamp(),
  -- The row before the act; null in that row.
  asked bigint unique,
  person text not null,
  via text not null,
  action text not null,
  subject text not null,
  reason text not null,
  before text,
  after text,
  outcome text not null
);
create index kernel_operator_acts_at on kernel_operator_acts (at);
create function kernel_operator_acts_stay() returns trigger language plpgsql as $$
begin
  if tg_op = 'DELETE' and old.at < clock_timestamp() - interval '30 days' then return old; end if;
  raise exception 'the audit trail of operators is append-only';
end $$;
create trigger kernel_operator_acts_stay before update or delete on kernel_operator_acts
  for each row execute function kernel_operator_acts_stay();
create trigger kernel_operator_acts_kept before truncate on kernel_operator_acts
  for each statement execute function kernel_operator_acts_stay();
