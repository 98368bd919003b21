-- The result of a payment is kept until its host was seen to have it, and for a while after that: the same call gets it and pays nothing.
-- A replica of the version before takes an acknowledged payment for a settled one.
alter table mcp_tools_reservations add column acknowledged_at timestamptz;
alter table mcp_tools_reservations drop constraint mcp_tools_reservations_state_check;
alter table mcp_tools_reservations add constraint mcp_tools_reservations_state_check
  check (state in ('reserved', 'signed', 'unknown', 'spent', 'acknowledged', 'settled', 'released'));

create index mcp_tools_reservations_acknowledged on mcp_tools_reservations (acknowledged_at) where state = 'acknowledged';

-- A minute is counted by the close times of ledgers, which no setting of a clock changes.
alter table mcp_tools_reservations add column ledger_seconds bigint;
