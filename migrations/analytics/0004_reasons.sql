-- Why settlements failed or have no end, by UTC day.
create table analytics_reasons (
  day date not null,
  reason text not null,
  asset text not null,
  status text not null,
  transactions bigint not null,
  fee_stroops numeric not null,
  primary key (day, reason, asset, status)
);
insert into analytics_reasons
select (occurred_at at time zone 'UTC')::date, error_reason, asset, status, count(*), sum(fee_stroops)
from analytics_settlements where status <> 'open' and error_reason is not null group by 1, 2, 3, 4;
