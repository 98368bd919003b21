-- What sellers declare about paid resources. A resource is what discovery lists; its versions and payment options keep their
-- history; observations and decisions tell a seller why something is or is not listed. No table refers to another owner's.
create table catalog_resources (
  -- Grows with the order of first listing: the order of browsing and the bound of a snapshot. Internal, never public.
  id bigint generated always as identity primary key,
  -- sha256 hex of the identity: type, resource and, for MCP, the tool's name.
  key text not null unique,
  -- sha256 hex of the resource alone, to find everything that was said of one URL.
  resource_key text not null,
  type text not null check (type in ('http', 'mcp')),
  resource text not null,
  -- Empty for HTTP.
  tool_name text not null default '',
  -- scheme://host[:port]; null for a symbolic name.
  origin text,
  state text not null default 'active' check (state in ('active', 'stale', 'quarantined', 'removed')),
  state_reason text,
  state_changed_at timestamptz not null,
  verification text not null check (verification in ('unverified', 'payment_observed')),
  ownership text not null default 'provisional' check (ownership in ('provisional', 'proven')),
  -- Recipients whose payments declare it: the first one seen, or those the origin has named.
  pay_tos text[] not null,
  version integer not null check (version > 0),
  version_hash text not null,
  -- The cleaned declaration: description, names, tags, template, extensions, operations.
  declaration jsonb not null,
  -- Neutral keys of the declared extensions.
  extensions text[] not null,
  -- The public JSON, as it is served.
  document text not null,
  first_seen_at timestamptz not null,
  updated_at timestamptz not null
);
create index catalog_resources_resource on catalog_resources (resource_key);
create index catalog_resources_type on catalog_resources (type, id desc);
create index catalog_resources_state on catalog_resources (state, id desc);
create index catalog_resources_extensions on catalog_resources using gin (extensions);
create index catalog_resources_origin on catalog_resources (origin);

-- Accepted payment options. A changed amount retires the option and begins a new one.
create table catalog_options (
  id bigint generated always as identity primary key,
  resource_id bigint not null references catalog_resources (id) on delete cascade,
  -- HTTP method; empty for MCP.
  operation text not null,
  scheme text not null,
  -- Neutral spelling.
  network text not null,
  asset text not null,
  amount numeric(39, 0) not null check (amount >= 0),
  pay_to text not null,
  -- As the seller declared it.
  option jsonb not null,
  first_seen_at timestamptz not null,
  retired_at timestamptz
);
create unique index catalog_options_live on catalog_options (resource_id, operation, scheme, network, asset, pay_to) where retired_at is null;
create index catalog_options_history on catalog_options (resource_id, id);
create index catalog_options_pay_to on catalog_options (pay_to, resource_id desc) where retired_at is null;
create index catalog_options_asset on catalog_options (asset, resource_id desc) include (amount) where retired_at is null;
create index catalog_options_price on catalog_options (asset, amount, resource_id) where retired_at is null;
create index catalog_options_scheme on catalog_options (scheme, resource_id desc) where retired_at is null;
create index catalog_options_network on catalog_options (network, resource_id desc) where retired_at is null;

create table catalog_versions (
  resource_id bigint not null references catalog_resources (id) on delete cascade,
  version integer not null,
  version_hash text not null,
  document text not null,
  -- Who declared it: the recipient of the payment that carried it.
  pay_to text not null,
  at timestamptz not null,
  primary key (resource_id, version)
);

-- When a resource was last seen and how much it is used: written behind, in batches.
create table catalog_activity (
  resource_id bigint primary key references catalog_resources (id) on delete cascade,
  last_seen_at timestamptz not null,
  observed bigint not null default 0,
  settled bigint not null default 0,
  -- Distinct payers of settled payments.
  payers bigint not null default 0,
  last_settled_at timestamptz
);
create table catalog_payers (
  resource_id bigint not null references catalog_resources (id) on delete cascade,
  payer text not null,
  settled bigint not null default 0,
  last_settled_at timestamptz not null,
  primary key (resource_id, payer)
);

-- Declarations of one resource by recipients that do not own it; the origin's word may make one of them the owner.
create table catalog_claims (
  resource_id bigint not null references catalog_resources (id) on delete cascade,
  pay_to text not null,
  declaration jsonb not null,
  option jsonb not null,
  first_seen_at timestamptz not null,
  last_seen_at timestamptz not null,
  primary key (resource_id, pay_to)
);

-- What was observed and what came of it. An identical observation is counted, not repeated.
create table catalog_observations (
  id bigint generated always as identity primary key,
  -- sha256 hex of what was observed together with the decision.
  digest text not null unique,
  resource_key text,
  resource_id bigint,
  -- As declared, cleaned and cut.
  url text not null,
  type text,
  tool_name text,
  pay_to text not null,
  stage text not null check (stage in ('verified', 'settled')),
  decision text not null check (decision in ('listed', 'updated', 'unchanged', 'held', 'rejected')),
  -- A public word.
  reason text,
  -- For operators only.
  detail text,
  first_at timestamptz not null,
  last_at timestamptz not null,
  times bigint not null default 1,
  -- From the payment's answer to the decision.
  lag_ms integer not null
);
create index catalog_observations_resource on catalog_observations (resource_key, last_at desc);
create index catalog_observations_age on catalog_observations (last_at);

-- Every move of a resource's state or owner, with who made it and why.
create table catalog_decisions (
  id bigint generated always as identity primary key,
  resource_id bigint not null references catalog_resources (id) on delete cascade,
  at timestamptz not null,
  -- `facilitator`, `origin`, or `operator:<label>`.
  by text not null,
  move text not null,
  from_state text,
  to_state text not null,
  reason text not null,
  -- For operators only.
  detail text
);
create index catalog_decisions_resource on catalog_decisions (resource_id, id desc);

-- Which resources' origins are to be asked, and when.
create table catalog_probes (
  resource_id bigint primary key references catalog_resources (id) on delete cascade,
  due_at timestamptz not null,
  attempts integer not null default 0,
  -- Raised by each lease: a late holder cannot write.
  fence bigint not null default 0,
  leased_until timestamptz,
  asked_at timestamptz,
  outcome text,
  detail text
);
create index catalog_probes_due on catalog_probes (due_at);

-- How much of a bounded good somebody has used on a UTC day.
create table catalog_quotas (
  day date not null,
  subject text not null,
  used bigint not null,
  primary key (day, subject)
);

-- Made once when the environment names none.
create table catalog_secrets (
  name text primary key,
  secret text not null
);
