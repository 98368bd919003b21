-- Leaderboards are kept in their order, so that one costs its page whatever the history is: for all history, and for
-- each window of days that may be asked today. A window is told by its first day. It is filled from
-- `analytics_standings` when its day begins, and what is recorded counts in each of them at once.
create table analytics_rankings (
  role text not null check (role in ('buyer', 'seller')),
  -- First day of the window; -infinity for all history.
  since date not null,
  address text not null,
  asset text not null,
  transactions bigint not null,
  amount numeric not null,
  primary key (role, since, address, asset)
);
create index analytics_rankings_order on analytics_rankings
  (role, since, asset, amount desc, transactions desc, address);

-- The windows that `analytics_rankings` has; any other is summed when it is asked.
create table analytics_ranking_windows (
  since date primary key
);
insert into analytics_ranking_windows values ('-infinity');
insert into analytics_rankings
select role, day, address, asset, transactions, amount from analytics_standings where day = '-infinity';

-- How many a payer or recipient dealt with last on a day. Since every window ends now, those it dealt with within one
-- are the sum of its days, as in `analytics_member_days`.
create table analytics_partner_days (
  role text not null check (role in ('buyer', 'seller')),
  address text not null,
  last_day date not null,
  members bigint not null,
  primary key (role, address, last_day)
);
insert into analytics_partner_days
select role, address, last_day, count(*) from (
  select payer, pay_to, (max(last_at) at time zone 'UTC')::date as last_day from analytics_pairs group by payer, pay_to
) p cross join lateral (values ('buyer', payer), ('seller', pay_to)) as r (role, address)
group by role, address, last_day;
