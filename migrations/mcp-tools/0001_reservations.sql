-- What agents may spend: one row a payment, from before anything is signed until it is known what became of it. Ceilings are held under
-- a lock by agent and asset, so that replicas cannot pass one together.
create table mcp_tools_reservations (
  id text primary key,
  day date not null,
  agent text not null,
  session text not null,
  invocation text not null,
  network text not null,
  asset text not null,
  pay_to text not null,
  amount numeric(39) not null check (amount > 0),
  state text not null check (state in ('reserved', 'signed', 'unknown', 'spent', 'settled', 'released')),
  created_at timestamptz not null,
  payer text,
  nonce numeric(20),
  expiration_ledger bigint,
  transaction text,
  check (state in ('reserved', 'released') or (payer is not null and nonce is not null and expiration_ledger is not null))
);

create index mcp_tools_reservations_spent on mcp_tools_reservations (day, agent, network, asset) where state <> 'released';
create index mcp_tools_reservations_open on mcp_tools_reservations (created_at) where state in ('reserved', 'signed', 'unknown');
create index mcp_tools_reservations_invocation on mcp_tools_reservations (invocation) where state in ('signed', 'unknown', 'spent');
