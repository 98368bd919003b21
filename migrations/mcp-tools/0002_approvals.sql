-- Where a payment went and how well that place is known, so that a day's ceilings can be told by origin and by grade. What was reserved
-- before counts towards no origin.
alter table mcp_tools_reservations add column origin text;
alter table mcp_tools_reservations add column grade text check (grade in ('proven', 'provisional'));

-- Payments that wait for a person, or were decided by one and not yet made: shared by the replicas of a tool server. A row is taken away by
-- the one payment that it lets pass.
create table mcp_tools_approvals (
  id text primary key,
  state text not null check (state in ('pending', 'approved', 'denied')),
  agent text not null,
  kind text not null check (kind in ('http', 'mcp')),
  origin text,
  asset text not null,
  pay_to text not null,
  amount numeric(39) not null check (amount > 0),
  rule text not null,
  asked_at timestamptz not null,
  mark text not null
);

create index mcp_tools_approvals_asked on mcp_tools_approvals (asked_at);
