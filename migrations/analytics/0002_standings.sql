-- Participants by day and asset: the networks, schemes and facilitators they used are lists of the row, not rows of their own. A third of the
-- rows, and a leaderboard groups as many fewer.
create table analytics_standings (
  role text not null check (role in ('buyer', 'seller')),
  -- -infinity for all history.
  day date not null,
  address text not null,
  asset text not null,
  networks text[] not null,
  schemes text[] not null,
  facilitators text[] not null,
  transactions bigint not null,
  successful bigint not null,
  failed bigint not null,
  amount numeric not null,
  first_at timestamptz not null,
  last_at timestamptz not null,
  primary key (role, day, address, asset)
);
create index analytics_standings_address on analytics_standings (address, day);
insert into analytics_standings
select role, day, address, asset, array_agg(distinct network), array_agg(distinct scheme), array_agg(distinct facilitator_id), sum(transactions), sum(successful), sum(failed),
  sum(amount), min(first_at), max(last_at) from analytics_participants group by role, day, address, asset;
drop table analytics_participants;
