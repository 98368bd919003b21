-- When a payment passed its steps, for whoever looks at its life: stored with the record itself. Null for what was recorded before, and for
-- what was adopted from the ledger.
alter table kernel_settlements
  add column asked_at timestamptz,
  add column verified_at timestamptz,
  add column leased_at timestamptz;
alter table kernel_attempts add column recorded_at timestamptz, add column sent_at timestamptz;
-- Apart from the column, so that attempts of before have none.
alter table kernel_attempts alter column recorded_at set default clock_timestamp();
