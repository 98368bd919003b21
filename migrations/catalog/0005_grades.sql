-- Whose words a listing's are: `claimed` came with a payment that anybody may have made, `declared` came with one under a principal
-- that showed control of the recipient, `origin` was read from the origin itself. A lower grade never changes a higher one. What
-- was listed before came with payments, whoever made them: it is claimed, and its origin is asked about it again. The lowest grade is
-- the default, for replicas of the version before.
alter table catalog_resources
  add column grade text not null default 'claimed' check (grade in ('claimed', 'declared', 'origin')),
  -- When its origin was last asked about this resource, and the share of the looks of thirty days that found it alive.
  add column last_look_at timestamptz,
  add column uptime real;
alter table catalog_versions add column grade text not null default 'claimed' check (grade in ('claimed', 'declared', 'origin'));

-- The newest words of each grade, kept apart. What is shown is the highest of them.
create table catalog_words (
  resource_id bigint not null references catalog_resources (id) on delete cascade,
  grade text not null check (grade in ('claimed', 'declared', 'origin')),
  -- The recipient they name.
  pay_to text not null,
  version_hash text not null,
  document text not null,
  at timestamptz not null,
  primary key (resource_id, grade)
);
insert into catalog_words (resource_id, grade, pay_to, version_hash, document, at)
  select id, 'claimed', pay_tos[1], version_hash, document, updated_at from catalog_resources where pay_tos[1] is not null;

-- Which principals have shown that a recipient is theirs.
create table catalog_recipients (
  principal text not null,
  pay_to text not null,
  shown_at timestamptz not null,
  primary key (principal, pay_to)
);

-- What looks at the origin found, by day.
create table catalog_looks (
  resource_id bigint not null references catalog_resources (id) on delete cascade,
  day date not null,
  looks integer not null,
  alive integer not null,
  primary key (resource_id, day)
);
create index catalog_looks_day on catalog_looks (day);
-- Looks in a row that found nobody who asks to be paid.
alter table catalog_probes add column dead integer not null default 0;
update catalog_probes set due_at = now();

-- Settled payments and distinct payers of thirty days that count for rank: no dust, none from who is paid in turn.
alter table catalog_activity
  add column recent_settled bigint not null default 0,
  add column recent_payers bigint not null default 0,
  add column recent_at timestamptz;
alter table catalog_sales add column payer text, add column counts boolean not null default true;
create index catalog_sales_resource on catalog_sales (resource_id, at);
alter table catalog_payers add column counts boolean not null default true;
create index catalog_payers_payer on catalog_payers (payer);
alter table catalog_activity add column earned bigint not null default 0;
update catalog_activity set earned = payers;
