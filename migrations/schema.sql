-- What all migrations together make, for reading; nothing runs this file. Written by `npm run schema`, and held to the
-- migrations by a test.

CREATE FUNCTION batch_store_settle_claimed() RETURNS trigger LANGUAGE plpgsql AS $$
begin
  -- An attempted settle may be in a ledger before this claim and pay out none of it.
  insert into batch_store_claims (principal, network, kind, receiver, token, payload)
    select new.principal, new.network, 'settle', new.receiver, new.token,
      jsonb_build_object('type', 'settle', 'receiver', new.receiver, 'token', new.token)
    where not exists (select 1 from batch_store_claims where state = 'open' and kind = 'settle'
      and principal = new.principal and network = new.network and receiver = new.receiver and token = new.token
      and attempts = 0 and begun_at <= clock_timestamp());
  return null;
end
$$;

CREATE FUNCTION catalog_count_missed_words() RETURNS trigger LANGUAGE plpgsql AS $$
begin
  -- One at a time: two that meet in several words would wait for each other.
  perform pg_advisory_xact_lock(724402405);
  if tg_op = 'INSERT' then
    insert into catalog_missed_words as t (words, sessions, times, last_at)
      select words, count(*), sum(times), max(last_at) from fresh group by words
      on conflict (words) do update set sessions = t.sessions + excluded.sessions, times = t.times + excluded.times,
        last_at = greatest(t.last_at, excluded.last_at);
  elsif tg_op = 'UPDATE' then
    update catalog_missed_words t set times = t.times + d.times, last_at = greatest(t.last_at, d.last_at)
      from (
        select words, sum(times) as times, max(last_at) as last_at
        from (select words, times, last_at from fresh union all select words, -times, last_at from gone) c
        group by words
      ) d
      where d.words = t.words;
  else
    update catalog_missed_words t set sessions = t.sessions - d.sessions, times = t.times - d.times
      from (select words, count(*) as sessions, sum(times) as times from gone group by words) d
      where d.words = t.words;
    delete from catalog_missed_words t using gone where t.words = gone.words and t.sessions = 0;
  end if;
  return null;
end
$$;

CREATE FUNCTION kernel_attempt_count_of_version_01() RETURNS trigger LANGUAGE plpgsql AS $$
begin
  update kernel_settlements set attempt_count = new.number where id = new.settlement and attempt_count < new.number;
  return null;
end
$$;

CREATE FUNCTION kernel_attempt_of_version_01() RETURNS trigger LANGUAGE plpgsql AS $$
begin
  new.taken := true;
  return new;
end
$$;

CREATE FUNCTION kernel_budget_of_version_01() RETURNS trigger LANGUAGE plpgsql AS $$
declare
  was_open constant boolean := old.state in ('prepared', 'submitted');
  given_back constant bigint := case when was_open then old.budget_stroops else 0 end;
  charged_before constant bigint := case when was_open then 0 else coalesce(old.fee_charged_stroops, 0) end;
  mine constant bigint := pg_current_xact_id()::text::bigint;
begin
  -- A row knows the lower half of the transaction that wrote it: it is the nearest to this one that ends in that half.
  update kernel_sponsor_budget as b set reserved_stroops = b.reserved_stroops - given_back,
    committed_stroops = b.committed_stroops + coalesce(new.fee_charged_stroops, 0) - charged_before
  where b.day = new.budget_day and b.principal = new.budget_principal
    and pg_xact_status((mine - 2147483648
      + mod(mod(b.xmin::text::bigint - mine, 4294967296) + 6442450944, 4294967296))::text::xid8)
      is distinct from 'in progress';
  return null;
end
$$;

CREATE FUNCTION kernel_channel_claim() RETURNS trigger LANGUAGE plpgsql AS $$
begin
  if tg_op = 'INSERT' then
    if new.required_by is null then
      new.required_by := new.wanted_by;
      new.required_until := new.wanted_until;
    else
      new.wanted_by := new.required_by;
      new.wanted_until := new.required_until;
    end if;
  elsif (new.required_by, new.required_until) is distinct from (old.required_by, old.required_until) then
    new.wanted_by := new.required_by;
    new.wanted_until := new.required_until;
  else
    new.required_by := new.wanted_by;
    new.required_until := new.wanted_until;
  end if;
  return new;
end
$$;

CREATE FUNCTION kernel_channels_of_new_epoch() RETURNS trigger LANGUAGE plpgsql AS $$
begin
  update kernel_channels set reread = true,
    fence = fence + case when settlement is null then 1000000 else 0 end
    where state <> 'retired';
  return null;
end
$$;

CREATE FUNCTION kernel_ended_by_version_01() RETURNS trigger LANGUAGE plpgsql AS $$
begin
  new.ended_by := new.inner_hash;
  return new;
end
$$;

CREATE FUNCTION kernel_fact_of_version_01() RETURNS trigger LANGUAGE plpgsql AS $$
begin
  new.principal := (select principal from kernel_settlements where id = new.subject::uuid);
  return new;
end
$$;

CREATE FUNCTION kernel_operator_acts_stay() RETURNS trigger LANGUAGE plpgsql AS $$
begin
  if tg_op = 'DELETE' and old.at < clock_timestamp() - interval '30 days' then return old; end if;
  raise exception 'the audit trail of operators is append-only';
end $$;

CREATE FUNCTION kernel_server_identity() RETURNS text LANGUAGE plpgsql STABLE AS $$
declare
  timeline text := '';
  epochs oid := to_regclass('kernel_journal_epochs');
begin
  begin
    timeline := substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8);
  exception when others then
    -- A service that does not show its log.
    timeline := '';
  end;
  return concat_ws(' ', (select oid from pg_database where datname = current_database()),
    extract(epoch from pg_postmaster_start_time()), timeline, epochs, pg_relation_filenode(epochs));
end
$$;

CREATE FUNCTION kernel_settlement_of_version_01() RETURNS trigger LANGUAGE plpgsql AS $$
begin
  new.budget_principal := new.principal;
  if starts_with(new.principal, 'ip:') then
    new.principal := 'anonymous';
  end if;
  return new;
end
$$;

CREATE FUNCTION receipts_server() RETURNS text LANGUAGE plpgsql STABLE AS $$
declare
  cluster text := '';
begin
  begin
    cluster := (select system_identifier::text from pg_control_system());
  exception when others then
    -- A service that does not show its control data.
    cluster := '';
  end;
  return split_part(kernel_server_identity(), ' ', 1) || ' ' || split_part(kernel_server_identity(), ' ', 3)
    || ' ' || cluster;
end
$$;

CREATE FUNCTION search_lexical_note_transaction() RETURNS trigger LANGUAGE plpgsql AS $$
begin
  new.xid := pg_current_xact_id();
  return new;
end
$$;

CREATE TABLE analytics_attendance (
    width text NOT NULL,
    starts_at timestamp with time zone NOT NULL,
    role text NOT NULL,
    members bigint NOT NULL,
    CONSTRAINT analytics_attendance_role_check CHECK ((role = ANY (ARRAY['buyer'::text, 'seller'::text]))),
    CONSTRAINT analytics_attendance_width_check CHECK ((width = ANY (ARRAY['hour'::text, 'day'::text]))),
    CONSTRAINT analytics_attendance_pkey PRIMARY KEY (width, starts_at, role)
);

CREATE TABLE analytics_member_days (
    kind text NOT NULL,
    last_day date NOT NULL,
    members bigint NOT NULL,
    CONSTRAINT analytics_member_days_pkey PRIMARY KEY (kind, last_day)
);

CREATE TABLE analytics_members (
    kind text NOT NULL,
    name text NOT NULL,
    pseudonym text,
    last_day date NOT NULL,
    CONSTRAINT analytics_members_kind_check CHECK ((kind = ANY (ARRAY['buyer'::text, 'seller'::text, 'facilitator'::text, 'network'::text, 'resource'::text]))),
    CONSTRAINT analytics_members_pkey PRIMARY KEY (kind, name)
);
CREATE INDEX analytics_members_pseudonym ON analytics_members USING btree (pseudonym) WHERE (pseudonym IS NOT NULL);

CREATE TABLE analytics_pairs (
    payer text NOT NULL,
    pay_to text NOT NULL,
    asset text NOT NULL,
    transactions bigint NOT NULL,
    successful bigint NOT NULL,
    amount numeric NOT NULL,
    first_at timestamp with time zone NOT NULL,
    last_at timestamp with time zone NOT NULL,
    CONSTRAINT analytics_pairs_pkey PRIMARY KEY (payer, pay_to, asset)
);
CREATE INDEX analytics_pairs_pay_to ON analytics_pairs USING btree (pay_to, payer);

CREATE TABLE analytics_partner_days (
    role text NOT NULL,
    address text NOT NULL,
    last_day date NOT NULL,
    members bigint NOT NULL,
    CONSTRAINT analytics_partner_days_role_check CHECK ((role = ANY (ARRAY['buyer'::text, 'seller'::text]))),
    CONSTRAINT analytics_partner_days_pkey PRIMARY KEY (role, address, last_day)
);

CREATE TABLE analytics_ranking_windows (
    since date NOT NULL,
    CONSTRAINT analytics_ranking_windows_pkey PRIMARY KEY (since)
);

CREATE TABLE analytics_rankings (
    role text NOT NULL,
    since date NOT NULL,
    address text NOT NULL,
    asset text NOT NULL,
    transactions bigint NOT NULL,
    amount numeric NOT NULL,
    CONSTRAINT analytics_rankings_role_check CHECK ((role = ANY (ARRAY['buyer'::text, 'seller'::text]))),
    CONSTRAINT analytics_rankings_pkey PRIMARY KEY (role, since, address, asset)
);
CREATE INDEX analytics_rankings_order ON analytics_rankings USING btree (role, since, asset, amount DESC, transactions DESC, address);

CREATE TABLE analytics_reasons (
    day date NOT NULL,
    reason text NOT NULL,
    asset text NOT NULL,
    status text NOT NULL,
    transactions bigint NOT NULL,
    fee_stroops numeric NOT NULL,
    CONSTRAINT analytics_reasons_pkey PRIMARY KEY (day, reason, asset, status)
);

CREATE TABLE analytics_refusals (
    day date NOT NULL,
    operation text NOT NULL,
    reason text NOT NULL,
    principal text NOT NULL,
    refused bigint NOT NULL,
    first_at timestamp with time zone NOT NULL,
    last_at timestamp with time zone NOT NULL,
    samples jsonb NOT NULL,
    CONSTRAINT analytics_refusals_operation_check CHECK ((operation = ANY (ARRAY['verify'::text, 'settle'::text]))),
    CONSTRAINT analytics_refusals_pkey PRIMARY KEY (day, operation, reason, principal)
);

CREATE TABLE analytics_resources (
    resource_id bigint NOT NULL,
    origin text,
    asset text NOT NULL,
    transactions bigint NOT NULL,
    successful bigint NOT NULL,
    amount numeric NOT NULL,
    first_at timestamp with time zone NOT NULL,
    last_at timestamp with time zone NOT NULL,
    CONSTRAINT analytics_resources_pkey PRIMARY KEY (resource_id, asset)
);
CREATE INDEX analytics_resources_origin ON analytics_resources USING btree (origin);

CREATE TABLE analytics_secrets (
    name text NOT NULL,
    secret text NOT NULL,
    CONSTRAINT analytics_secrets_pkey PRIMARY KEY (name)
);

CREATE TABLE analytics_settlements (
    id uuid NOT NULL,
    occurred_at timestamp with time zone NOT NULL,
    due_at timestamp with time zone NOT NULL,
    network text NOT NULL,
    scheme text NOT NULL,
    asset text NOT NULL,
    payer text NOT NULL,
    pay_to text NOT NULL,
    amount_max numeric(39,0) NOT NULL,
    amount_meant numeric(39,0) NOT NULL,
    amount numeric(39,0),
    fee_stroops bigint DEFAULT 0 NOT NULL,
    transaction_hash text NOT NULL,
    status text NOT NULL,
    facilitator_id text NOT NULL,
    resource_id bigint,
    resource_origin text,
    resource_url text,
    error_reason text,
    organic boolean NOT NULL,
    principal text,
    CONSTRAINT analytics_settlements_status_check CHECK ((status = ANY (ARRAY['open'::text, 'unknown'::text, 'success'::text, 'failed'::text]))),
    CONSTRAINT analytics_settlements_pkey PRIMARY KEY (id)
);
CREATE INDEX analytics_settlements_asset ON analytics_settlements USING btree (asset, occurred_at DESC, id DESC) WHERE (status <> 'open'::text);
CREATE INDEX analytics_settlements_due ON analytics_settlements USING btree (due_at) WHERE (status = 'open'::text);
CREATE INDEX analytics_settlements_hash ON analytics_settlements USING btree (transaction_hash);
CREATE INDEX analytics_settlements_largest ON analytics_settlements USING btree (asset, amount_meant DESC, id DESC) WHERE (status <> 'open'::text);
CREATE INDEX analytics_settlements_newest ON analytics_settlements USING btree (occurred_at DESC, id DESC) WHERE (status <> 'open'::text);
CREATE INDEX analytics_settlements_origin ON analytics_settlements USING btree (resource_origin, occurred_at DESC, id DESC) WHERE ((resource_origin IS NOT NULL) AND (status <> 'open'::text));
CREATE INDEX analytics_settlements_pair ON analytics_settlements USING btree (payer, pay_to, occurred_at);
CREATE INDEX analytics_settlements_pay_to ON analytics_settlements USING btree (pay_to, occurred_at DESC, id DESC) WHERE (status <> 'open'::text);
CREATE INDEX analytics_settlements_payer ON analytics_settlements USING btree (payer, occurred_at DESC, id DESC) WHERE (status <> 'open'::text);
CREATE INDEX analytics_settlements_principal ON analytics_settlements USING btree (principal, occurred_at DESC, id DESC) WHERE ((principal IS NOT NULL) AND (status <> 'open'::text));
CREATE INDEX analytics_settlements_reason ON analytics_settlements USING btree (error_reason, occurred_at DESC, id DESC) WHERE ((error_reason IS NOT NULL) AND (status <> 'open'::text));
CREATE INDEX analytics_settlements_reason_scheme ON analytics_settlements USING btree (error_reason, scheme, occurred_at DESC, id DESC) WHERE ((error_reason IS NOT NULL) AND (status <> 'open'::text));
CREATE INDEX analytics_settlements_resource ON analytics_settlements USING btree (resource_id, occurred_at DESC, id DESC) WHERE ((resource_id IS NOT NULL) AND (status <> 'open'::text));
CREATE INDEX analytics_settlements_scheme ON analytics_settlements USING btree (scheme, occurred_at DESC, id DESC) WHERE (status <> 'open'::text);
CREATE INDEX analytics_settlements_status ON analytics_settlements USING btree (status, occurred_at DESC, id DESC) WHERE (status = ANY (ARRAY['unknown'::text, 'failed'::text]));
CREATE INDEX analytics_settlements_unsettled ON analytics_settlements USING btree (status, asset, scheme, amount_meant DESC, id DESC) WHERE (status = ANY (ARRAY['unknown'::text, 'failed'::text]));

CREATE TABLE analytics_standings (
    role text NOT NULL,
    day date NOT NULL,
    address text NOT NULL,
    asset text NOT NULL,
    networks text[] NOT NULL,
    schemes text[] NOT NULL,
    facilitators text[] NOT NULL,
    transactions bigint NOT NULL,
    successful bigint NOT NULL,
    failed bigint NOT NULL,
    amount numeric NOT NULL,
    first_at timestamp with time zone NOT NULL,
    last_at timestamp with time zone NOT NULL,
    CONSTRAINT analytics_standings_role_check CHECK ((role = ANY (ARRAY['buyer'::text, 'seller'::text]))),
    CONSTRAINT analytics_standings_pkey PRIMARY KEY (role, day, address, asset)
);
CREATE INDEX analytics_standings_address ON analytics_standings USING btree (address, day);

CREATE TABLE analytics_totals (
    width text NOT NULL,
    starts_at timestamp with time zone NOT NULL,
    network text NOT NULL,
    scheme text NOT NULL,
    asset text NOT NULL,
    status text NOT NULL,
    transactions bigint NOT NULL,
    amount numeric NOT NULL,
    fee_stroops numeric NOT NULL,
    organic_transactions bigint NOT NULL,
    organic_amount numeric NOT NULL,
    CONSTRAINT analytics_totals_width_check CHECK ((width = ANY (ARRAY['hour'::text, 'day'::text]))),
    CONSTRAINT analytics_totals_pkey PRIMARY KEY (width, starts_at, network, scheme, asset, status)
);

CREATE TABLE analytics_verifications (
    day date NOT NULL,
    valid bigint DEFAULT 0 NOT NULL,
    refused bigint DEFAULT 0 NOT NULL,
    CONSTRAINT analytics_verifications_pkey PRIMARY KEY (day)
);

CREATE TABLE batch_store_channels (
    principal text NOT NULL,
    network text NOT NULL,
    channel_id text NOT NULL,
    config jsonb NOT NULL,
    receiver text NOT NULL,
    token text NOT NULL,
    withdraw_delay bigint NOT NULL,
    delegated boolean DEFAULT false NOT NULL,
    charged numeric(39,0) NOT NULL,
    signed_max numeric(39,0) NOT NULL,
    signature text NOT NULL,
    balance numeric(39,0) DEFAULT 0 NOT NULL,
    total_claimed numeric(39,0) DEFAULT 0 NOT NULL,
    withdraw_requested_at bigint DEFAULT 0 NOT NULL,
    refund_nonce numeric(39,0) DEFAULT 0 NOT NULL,
    synced_at timestamp with time zone,
    requested_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    unclaimed_since timestamp with time zone,
    claim bigint,
    claim_alone boolean DEFAULT false NOT NULL,
    claim_after timestamp with time zone,
    pending_payment text,
    pending_max numeric(39,0),
    pending_signature text,
    pending_until timestamp with time zone,
    opened_at timestamp with time zone DEFAULT now() NOT NULL,
    refund_amount numeric(39,0),
    refund_payment text,
    refund_for_nonce numeric(39,0),
    refund_expires_at bigint,
    lost numeric(39,0) DEFAULT 0 NOT NULL,
    lost_at timestamp with time zone,
    CONSTRAINT batch_store_channels_pkey PRIMARY KEY (principal, network, channel_id)
);
CREATE INDEX batch_store_channels_claim ON batch_store_channels USING btree (claim) WHERE (claim IS NOT NULL);
CREATE INDEX batch_store_channels_lost ON batch_store_channels USING btree (network) WHERE (lost > (0)::numeric);
CREATE INDEX batch_store_channels_unclaimed ON batch_store_channels USING btree (unclaimed_since) WHERE (unclaimed_since IS NOT NULL);
CREATE TRIGGER batch_store_claimed AFTER UPDATE ON batch_store_channels FOR EACH ROW WHEN ((new.delegated AND (new.total_claimed > old.total_claimed))) EXECUTE FUNCTION batch_store_settle_claimed();
CREATE TRIGGER batch_store_claimed_before AFTER INSERT ON batch_store_channels FOR EACH ROW WHEN ((new.delegated AND (new.total_claimed > (0)::numeric))) EXECUTE FUNCTION batch_store_settle_claimed();

CREATE TABLE batch_store_charges (
    principal text NOT NULL,
    network text NOT NULL,
    channel_id text NOT NULL,
    payment text NOT NULL,
    amount numeric(39,0) NOT NULL,
    charged numeric(39,0) NOT NULL,
    charged_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT batch_store_charges_pkey PRIMARY KEY (principal, network, channel_id, payment)
);
CREATE INDEX batch_store_charges_age ON batch_store_charges USING btree (charged_at);

CREATE TABLE batch_store_claims (
    id bigint NOT NULL,
    principal text NOT NULL,
    network text NOT NULL,
    kind text NOT NULL,
    receiver text NOT NULL,
    token text NOT NULL,
    payload jsonb NOT NULL,
    state text DEFAULT 'open'::text NOT NULL,
    attempts integer DEFAULT 0 NOT NULL,
    transaction text,
    reason text,
    begun_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    ended_at timestamp with time zone,
    CONSTRAINT batch_store_claims_kind_check CHECK ((kind = ANY (ARRAY['claim'::text, 'settle'::text]))),
    CONSTRAINT batch_store_claims_state_check CHECK ((state = ANY (ARRAY['open'::text, 'settled'::text, 'failed'::text]))),
    CONSTRAINT batch_store_claims_pkey PRIMARY KEY (id)
);
ALTER TABLE batch_store_claims ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY ( SEQUENCE NAME batch_store_claims_id_seq START WITH 1 INCREMENT BY 1 NO MINVALUE NO MAXVALUE CACHE 1 );
CREATE INDEX batch_store_claims_ended ON batch_store_claims USING btree (ended_at) WHERE (state <> 'open'::text);
CREATE INDEX batch_store_claims_open ON batch_store_claims USING btree (id) WHERE (state = 'open'::text);

CREATE TABLE batch_store_identity (
    one boolean DEFAULT true NOT NULL,
    id uuid DEFAULT gen_random_uuid() NOT NULL,
    CONSTRAINT batch_store_identity_one_check CHECK (one),
    CONSTRAINT batch_store_identity_pkey PRIMARY KEY (one)
);

CREATE TABLE batch_store_policies (
    principal text NOT NULL,
    network text NOT NULL,
    token text NOT NULL,
    claim_every_seconds bigint NOT NULL,
    claim_at numeric(39,0),
    CONSTRAINT batch_store_policies_claim_every_seconds_check CHECK ((claim_every_seconds > 0)),
    CONSTRAINT batch_store_policies_pkey PRIMARY KEY (principal, network, token)
);

CREATE TABLE catalog_activity (
    resource_id bigint NOT NULL,
    last_seen_at timestamp with time zone NOT NULL,
    observed bigint DEFAULT 0 NOT NULL,
    settled bigint DEFAULT 0 NOT NULL,
    payers bigint DEFAULT 0 NOT NULL,
    last_settled_at timestamp with time zone,
    recent_settled bigint DEFAULT 0 NOT NULL,
    recent_payers bigint DEFAULT 0 NOT NULL,
    recent_at timestamp with time zone,
    earned bigint DEFAULT 0 NOT NULL,
    risked numeric DEFAULT 0 NOT NULL,
    CONSTRAINT catalog_activity_pkey PRIMARY KEY (resource_id)
);

CREATE TABLE catalog_authorizations (
    authorization_key text NOT NULL,
    at timestamp with time zone NOT NULL,
    CONSTRAINT catalog_authorizations_pkey PRIMARY KEY (authorization_key)
);
CREATE INDEX catalog_authorizations_at ON catalog_authorizations USING btree (at);

CREATE TABLE catalog_claim_payers (
    resource_id bigint NOT NULL,
    claim text NOT NULL,
    payer text NOT NULL,
    at timestamp with time zone NOT NULL,
    risked numeric DEFAULT 0 NOT NULL,
    first_at timestamp with time zone NOT NULL,
    CONSTRAINT catalog_claim_payers_pkey PRIMARY KEY (resource_id, claim, payer)
);
CREATE INDEX catalog_claim_payers_at ON catalog_claim_payers USING btree (at);

CREATE TABLE catalog_claims (
    resource_id bigint NOT NULL,
    pay_to text NOT NULL,
    declaration jsonb NOT NULL,
    option jsonb NOT NULL,
    first_seen_at timestamp with time zone NOT NULL,
    last_seen_at timestamp with time zone NOT NULL,
    CONSTRAINT catalog_claims_pkey PRIMARY KEY (resource_id, pay_to)
);

CREATE TABLE catalog_contenders (
    resource_id bigint NOT NULL,
    claim text NOT NULL,
    pay_to text NOT NULL,
    declaration jsonb NOT NULL,
    first_at timestamp with time zone NOT NULL,
    last_at timestamp with time zone NOT NULL,
    settled_at timestamp with time zone,
    CONSTRAINT catalog_contenders_pkey PRIMARY KEY (resource_id, claim)
);

CREATE TABLE catalog_decisions (
    id bigint NOT NULL,
    resource_id bigint NOT NULL,
    at timestamp with time zone NOT NULL,
    by text NOT NULL,
    move text NOT NULL,
    from_state text,
    to_state text NOT NULL,
    reason text NOT NULL,
    detail text,
    CONSTRAINT catalog_decisions_pkey PRIMARY KEY (id)
);
ALTER TABLE catalog_decisions ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY ( SEQUENCE NAME catalog_decisions_id_seq START WITH 1 INCREMENT BY 1 NO MINVALUE NO MAXVALUE CACHE 1 );
CREATE INDEX catalog_decisions_resource ON catalog_decisions USING btree (resource_id, id DESC);

CREATE TABLE catalog_impressions (
    id bigint NOT NULL,
    at timestamp with time zone NOT NULL,
    session text NOT NULL,
    mode text NOT NULL,
    first_position integer NOT NULL,
    resource_ids bigint[] NOT NULL,
    milliseconds integer NOT NULL,
    missing text[] NOT NULL,
    reranking text NOT NULL,
    CONSTRAINT catalog_impressions_mode_check CHECK ((mode = ANY (ARRAY['lexical'::text, 'semantic'::text, 'hybrid'::text]))),
    CONSTRAINT catalog_impressions_reranking_check CHECK ((reranking = ANY (ARRAY['off'::text, 'used'::text, 'failed'::text]))),
    CONSTRAINT catalog_impressions_pkey PRIMARY KEY (id)
);
ALTER TABLE catalog_impressions ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY ( SEQUENCE NAME catalog_impressions_id_seq START WITH 1 INCREMENT BY 1 NO MINVALUE NO MAXVALUE CACHE 1 );
CREATE INDEX catalog_impressions_at ON catalog_impressions USING btree (at);

CREATE TABLE catalog_looks (
    resource_id bigint NOT NULL,
    day date NOT NULL,
    looks integer NOT NULL,
    alive integer NOT NULL,
    CONSTRAINT catalog_looks_pkey PRIMARY KEY (resource_id, day)
);
CREATE INDEX catalog_looks_day ON catalog_looks USING btree (day);

CREATE TABLE catalog_missed_searches (
    day date NOT NULL,
    words text NOT NULL,
    session text NOT NULL,
    times bigint NOT NULL,
    last_at timestamp with time zone NOT NULL,
    CONSTRAINT catalog_missed_searches_pkey PRIMARY KEY (day, words, session)
);
CREATE TRIGGER catalog_missed_words_asked AFTER INSERT ON catalog_missed_searches REFERENCING NEW TABLE AS fresh FOR EACH STATEMENT EXECUTE FUNCTION catalog_count_missed_words();
CREATE TRIGGER catalog_missed_words_asked_again AFTER UPDATE ON catalog_missed_searches REFERENCING OLD TABLE AS gone NEW TABLE AS fresh FOR EACH STATEMENT EXECUTE FUNCTION catalog_count_missed_words();
CREATE TRIGGER catalog_missed_words_left AFTER DELETE ON catalog_missed_searches REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION catalog_count_missed_words();

CREATE TABLE catalog_missed_words (
    words text NOT NULL,
    sessions bigint NOT NULL,
    times bigint NOT NULL,
    last_at timestamp with time zone NOT NULL,
    CONSTRAINT catalog_missed_words_pkey PRIMARY KEY (words)
);
CREATE INDEX catalog_missed_words_asked ON catalog_missed_words USING btree (sessions DESC, times DESC, words);

CREATE TABLE catalog_named_paths (
    origin text NOT NULL,
    path text NOT NULL,
    at timestamp with time zone NOT NULL,
    CONSTRAINT catalog_named_paths_pkey PRIMARY KEY (origin, path)
);
CREATE INDEX catalog_named_paths_at ON catalog_named_paths USING btree (at);

CREATE TABLE catalog_observations (
    id bigint NOT NULL,
    digest text NOT NULL,
    resource_key text,
    resource_id bigint,
    url text NOT NULL,
    type text,
    tool_name text,
    pay_to text NOT NULL,
    stage text NOT NULL,
    decision text NOT NULL,
    reason text,
    detail text,
    first_at timestamp with time zone NOT NULL,
    last_at timestamp with time zone NOT NULL,
    times bigint DEFAULT 1 NOT NULL,
    lag_ms integer NOT NULL,
    CONSTRAINT catalog_observations_decision_check CHECK ((decision = ANY (ARRAY['listed'::text, 'updated'::text, 'unchanged'::text, 'held'::text, 'rejected'::text]))),
    CONSTRAINT catalog_observations_stage_check CHECK ((stage = ANY (ARRAY['verified'::text, 'settled'::text]))),
    CONSTRAINT catalog_observations_digest_key UNIQUE (digest),
    CONSTRAINT catalog_observations_pkey PRIMARY KEY (id)
);
ALTER TABLE catalog_observations ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY ( SEQUENCE NAME catalog_observations_id_seq START WITH 1 INCREMENT BY 1 NO MINVALUE NO MAXVALUE CACHE 1 );
CREATE INDEX catalog_observations_age ON catalog_observations USING btree (last_at);
CREATE INDEX catalog_observations_pay_to ON catalog_observations USING btree (pay_to, last_at DESC, id DESC);
CREATE INDEX catalog_observations_resource ON catalog_observations USING btree (resource_key, last_at DESC);

CREATE TABLE catalog_options (
    id bigint NOT NULL,
    resource_id bigint NOT NULL,
    operation text NOT NULL,
    scheme text NOT NULL,
    network text NOT NULL,
    asset text NOT NULL,
    amount numeric(39,0) NOT NULL,
    pay_to text NOT NULL,
    option jsonb NOT NULL,
    first_seen_at timestamp with time zone NOT NULL,
    retired_at timestamp with time zone,
    CONSTRAINT catalog_options_amount_check CHECK ((amount >= (0)::numeric)),
    CONSTRAINT catalog_options_pkey PRIMARY KEY (id)
);
ALTER TABLE catalog_options ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY ( SEQUENCE NAME catalog_options_id_seq START WITH 1 INCREMENT BY 1 NO MINVALUE NO MAXVALUE CACHE 1 );
CREATE INDEX catalog_options_asset ON catalog_options USING btree (asset, resource_id DESC) INCLUDE (amount) WHERE (retired_at IS NULL);
CREATE INDEX catalog_options_history ON catalog_options USING btree (resource_id, id);
CREATE UNIQUE INDEX catalog_options_live ON catalog_options USING btree (resource_id, operation, scheme, network, asset, pay_to) WHERE (retired_at IS NULL);
CREATE INDEX catalog_options_network ON catalog_options USING btree (network, resource_id DESC) WHERE (retired_at IS NULL);
CREATE INDEX catalog_options_pay_to ON catalog_options USING btree (pay_to, resource_id DESC) WHERE (retired_at IS NULL);
CREATE INDEX catalog_options_price ON catalog_options USING btree (asset, amount, resource_id) WHERE (retired_at IS NULL);
CREATE INDEX catalog_options_scheme ON catalog_options USING btree (scheme, resource_id DESC) WHERE (retired_at IS NULL);

CREATE TABLE catalog_payers (
    resource_id bigint NOT NULL,
    payer text NOT NULL,
    settled bigint DEFAULT 0 NOT NULL,
    last_settled_at timestamp with time zone NOT NULL,
    counts boolean DEFAULT true NOT NULL,
    circle boolean DEFAULT false NOT NULL,
    risked numeric DEFAULT 0 NOT NULL,
    CONSTRAINT catalog_payers_pkey PRIMARY KEY (resource_id, payer)
);
CREATE INDEX catalog_payers_payer ON catalog_payers USING btree (payer);

CREATE TABLE catalog_probes (
    resource_id bigint NOT NULL,
    due_at timestamp with time zone NOT NULL,
    attempts integer DEFAULT 0 NOT NULL,
    fence bigint DEFAULT 0 NOT NULL,
    leased_until timestamp with time zone,
    asked_at timestamp with time zone,
    outcome text,
    detail text,
    dead integer DEFAULT 0 NOT NULL,
    stands boolean DEFAULT false NOT NULL,
    free boolean DEFAULT false NOT NULL,
    gone_at timestamp with time zone,
    CONSTRAINT catalog_probes_pkey PRIMARY KEY (resource_id)
);
CREATE INDEX catalog_probes_due ON catalog_probes USING btree (stands, due_at);

CREATE TABLE catalog_quotas (
    day date NOT NULL,
    subject text NOT NULL,
    used bigint NOT NULL,
    CONSTRAINT catalog_quotas_pkey PRIMARY KEY (day, subject)
);

CREATE TABLE catalog_recipients (
    principal text NOT NULL,
    pay_to text NOT NULL,
    shown_at timestamp with time zone NOT NULL,
    CONSTRAINT catalog_recipients_pkey PRIMARY KEY (principal, pay_to)
);

CREATE TABLE catalog_resources (
    id bigint NOT NULL,
    key text NOT NULL,
    resource_key text NOT NULL,
    type text NOT NULL,
    resource text NOT NULL,
    tool_name text DEFAULT ''::text NOT NULL,
    origin text,
    state text DEFAULT 'active'::text NOT NULL,
    state_reason text,
    state_changed_at timestamp with time zone NOT NULL,
    verification text NOT NULL,
    ownership text DEFAULT 'provisional'::text NOT NULL,
    pay_tos text[] NOT NULL,
    version integer NOT NULL,
    version_hash text NOT NULL,
    declaration jsonb NOT NULL,
    extensions text[] NOT NULL,
    document text NOT NULL,
    first_seen_at timestamp with time zone NOT NULL,
    updated_at timestamp with time zone NOT NULL,
    grade text DEFAULT 'claimed'::text NOT NULL,
    last_look_at timestamp with time zone,
    uptime real,
    standing_at timestamp with time zone,
    price_changed_at timestamp with time zone,
    words_at timestamp with time zone,
    listed_by text,
    established_at timestamp with time zone,
    moved_at timestamp with time zone,
    CONSTRAINT catalog_resources_grade_check CHECK ((grade = ANY (ARRAY['claimed'::text, 'declared'::text, 'origin'::text]))),
    CONSTRAINT catalog_resources_ownership_check CHECK ((ownership = ANY (ARRAY['provisional'::text, 'proven'::text]))),
    CONSTRAINT catalog_resources_state_check CHECK ((state = ANY (ARRAY['active'::text, 'stale'::text, 'quarantined'::text, 'removed'::text]))),
    CONSTRAINT catalog_resources_type_check CHECK ((type = ANY (ARRAY['http'::text, 'mcp'::text]))),
    CONSTRAINT catalog_resources_verification_check CHECK ((verification = ANY (ARRAY['unverified'::text, 'payment_observed'::text]))),
    CONSTRAINT catalog_resources_version_check CHECK ((version > 0)),
    CONSTRAINT catalog_resources_key_key UNIQUE (key),
    CONSTRAINT catalog_resources_pkey PRIMARY KEY (id)
);
ALTER TABLE catalog_resources ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY ( SEQUENCE NAME catalog_resources_id_seq START WITH 1 INCREMENT BY 1 NO MINVALUE NO MAXVALUE CACHE 1 );
CREATE INDEX catalog_resources_extensions ON catalog_resources USING gin (extensions);
CREATE INDEX catalog_resources_listed ON catalog_resources USING btree (id DESC) INCLUDE (state, verification, type, extensions, standing_at);
CREATE INDEX catalog_resources_origin ON catalog_resources USING btree (origin);
CREATE INDEX catalog_resources_resource ON catalog_resources USING btree (resource_key);
CREATE INDEX catalog_resources_standing ON catalog_resources USING btree (id DESC) INCLUDE (state, verification, type, extensions, standing_at) WHERE (standing_at IS NOT NULL);
CREATE INDEX catalog_resources_stood ON catalog_resources USING btree (standing_at);

CREATE TABLE catalog_sales (
    transaction text NOT NULL,
    resource_id bigint NOT NULL,
    at timestamp with time zone NOT NULL,
    payer text,
    counts boolean DEFAULT true NOT NULL,
    CONSTRAINT catalog_sales_pkey PRIMARY KEY (transaction)
);
CREATE INDEX catalog_sales_at ON catalog_sales USING btree (at);
CREATE INDEX catalog_sales_resource ON catalog_sales USING btree (resource_id, at);

CREATE TABLE catalog_secrets (
    name text NOT NULL,
    secret text NOT NULL,
    CONSTRAINT catalog_secrets_pkey PRIMARY KEY (name)
);

CREATE TABLE catalog_signatures (
    resource_id bigint NOT NULL,
    signature text NOT NULL,
    at timestamp with time zone NOT NULL,
    operation text NOT NULL,
    is_current boolean NOT NULL,
    CONSTRAINT catalog_signatures_pkey PRIMARY KEY (resource_id, signature)
);

CREATE TABLE catalog_versions (
    resource_id bigint NOT NULL,
    version integer NOT NULL,
    version_hash text NOT NULL,
    document text NOT NULL,
    pay_to text NOT NULL,
    at timestamp with time zone NOT NULL,
    grade text DEFAULT 'claimed'::text NOT NULL,
    CONSTRAINT catalog_versions_grade_check CHECK ((grade = ANY (ARRAY['claimed'::text, 'declared'::text, 'origin'::text]))),
    CONSTRAINT catalog_versions_pkey PRIMARY KEY (resource_id, version)
);

CREATE TABLE catalog_words (
    resource_id bigint NOT NULL,
    grade text NOT NULL,
    pay_to text NOT NULL,
    version_hash text NOT NULL,
    document text NOT NULL,
    at timestamp with time zone NOT NULL,
    CONSTRAINT catalog_words_grade_check CHECK ((grade = ANY (ARRAY['claimed'::text, 'declared'::text, 'origin'::text]))),
    CONSTRAINT catalog_words_pkey PRIMARY KEY (resource_id, grade)
);

CREATE TABLE dashboard_incidents (
    cause text NOT NULL,
    minute timestamp with time zone NOT NULL,
    CONSTRAINT dashboard_incidents_pkey PRIMARY KEY (cause, minute)
);
CREATE INDEX dashboard_incidents_minute ON dashboard_incidents USING btree (minute);

CREATE TABLE dashboard_moves (
    id bigint NOT NULL,
    at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    by text NOT NULL,
    move text NOT NULL,
    subject text NOT NULL,
    note text NOT NULL,
    outcome text DEFAULT 'asked'::text NOT NULL,
    CONSTRAINT dashboard_moves_pkey PRIMARY KEY (id)
);
ALTER TABLE dashboard_moves ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY ( SEQUENCE NAME dashboard_moves_id_seq START WITH 1 INCREMENT BY 1 NO MINVALUE NO MAXVALUE CACHE 1 );
CREATE INDEX dashboard_moves_ended ON dashboard_moves USING btree (at) WHERE (outcome <> 'asked'::text);

CREATE TABLE kernel_account_sessions (
    challenge text NOT NULL,
    token text NOT NULL,
    account text NOT NULL,
    source text NOT NULL,
    opened_at timestamp with time zone NOT NULL,
    until timestamp with time zone NOT NULL,
    ended_at timestamp with time zone,
    CONSTRAINT kernel_account_sessions_pkey PRIMARY KEY (challenge),
    CONSTRAINT kernel_account_sessions_token_key UNIQUE (token)
);
CREATE INDEX kernel_account_sessions_account ON kernel_account_sessions USING btree (account, opened_at);
CREATE INDEX kernel_account_sessions_source ON kernel_account_sessions USING btree (source, opened_at);
CREATE INDEX kernel_account_sessions_until ON kernel_account_sessions USING btree (until);

CREATE TABLE kernel_attempts (
    settlement uuid NOT NULL,
    number integer NOT NULL,
    kind text NOT NULL,
    inner_hash text NOT NULL,
    outer_hash text NOT NULL,
    envelope bytea NOT NULL,
    inclusion_stroops bigint NOT NULL,
    recorded_ledger bigint NOT NULL,
    sent_status text,
    sent_ledger bigint,
    sent_code text,
    taken boolean DEFAULT false NOT NULL,
    recorded_at timestamp with time zone DEFAULT clock_timestamp(),
    sent_at timestamp with time zone,
    CONSTRAINT kernel_attempts_kind_check CHECK ((kind = ANY (ARRAY['payment'::text, 'cancel'::text]))),
    CONSTRAINT kernel_attempts_number_check CHECK ((number > 0)),
    CONSTRAINT kernel_attempts_pkey PRIMARY KEY (settlement, number)
);
CREATE INDEX kernel_attempts_outer_hash ON kernel_attempts USING btree (outer_hash);
CREATE TRIGGER kernel_attempts_counted_of_version_01 AFTER INSERT ON kernel_attempts FOR EACH ROW WHEN ((new.number > 1)) EXECUTE FUNCTION kernel_attempt_count_of_version_01();
CREATE TRIGGER kernel_attempts_of_version_01 BEFORE UPDATE ON kernel_attempts FOR EACH ROW WHEN (((new.sent_status = ANY (ARRAY['Pending'::text, 'Duplicate'::text, 'Lost'::text])) AND (NOT new.taken))) EXECUTE FUNCTION kernel_attempt_of_version_01();

CREATE TABLE kernel_channel_counts (
    network text NOT NULL,
    count integer NOT NULL,
    changed_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT kernel_channel_counts_count_check CHECK (((count >= 1) AND (count <= 1000))),
    CONSTRAINT kernel_channel_counts_pkey PRIMARY KEY (network)
);

CREATE TABLE kernel_channels (
    address text NOT NULL,
    network text NOT NULL,
    sponsor text NOT NULL,
    number integer NOT NULL,
    state text DEFAULT 'wanted'::text NOT NULL,
    sequence bigint,
    sequence_ledger bigint DEFAULT 0 NOT NULL,
    fence bigint DEFAULT 0 NOT NULL,
    leased_until timestamp with time zone,
    settlement uuid,
    used_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    wanted_by text,
    wanted_until timestamp with time zone DEFAULT (clock_timestamp() + '00:03:00'::interval) NOT NULL,
    reread boolean DEFAULT false NOT NULL,
    required_by text,
    required_until timestamp with time zone DEFAULT (clock_timestamp() + '00:03:00'::interval) NOT NULL,
    CONSTRAINT kernel_channels_state_check CHECK ((state = ANY (ARRAY['wanted'::text, 'ready'::text, 'retiring'::text, 'merging'::text, 'retired'::text]))),
    CONSTRAINT kernel_channels_pkey PRIMARY KEY (address)
);
CREATE TRIGGER kernel_channels_claim BEFORE INSERT OR UPDATE OF required_by, required_until, wanted_by, wanted_until ON kernel_channels FOR EACH ROW EXECUTE FUNCTION kernel_channel_claim();

CREATE TABLE kernel_ended_sessions (
    session text NOT NULL,
    until timestamp with time zone NOT NULL,
    CONSTRAINT kernel_ended_sessions_pkey PRIMARY KEY (session)
);
CREATE INDEX kernel_ended_sessions_until ON kernel_ended_sessions USING btree (until);

CREATE TABLE kernel_fact_cursors (
    consumer text NOT NULL,
    updated_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    "position" bigint DEFAULT 0 NOT NULL,
    CONSTRAINT kernel_fact_cursors_pkey PRIMARY KEY (consumer)
);

CREATE TABLE kernel_facts (
    id bigint NOT NULL,
    at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    type text NOT NULL,
    version integer NOT NULL,
    subject text NOT NULL,
    data jsonb NOT NULL,
    "position" bigint,
    principal text,
    CONSTRAINT kernel_facts_version_check CHECK ((version > 0)),
    CONSTRAINT kernel_facts_pkey PRIMARY KEY (id)
);
ALTER TABLE kernel_facts ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY ( SEQUENCE NAME kernel_facts_id_seq START WITH 1 INCREMENT BY 1 NO MINVALUE NO MAXVALUE CACHE 1 );
CREATE UNIQUE INDEX kernel_facts_position ON kernel_facts USING btree ("position");
CREATE INDEX kernel_facts_principal ON kernel_facts USING btree (principal, "position") WHERE ((principal IS NOT NULL) AND ("position" IS NOT NULL));
CREATE INDEX kernel_facts_unplaced ON kernel_facts USING btree (id) WHERE ("position" IS NULL);
CREATE TRIGGER kernel_facts_of_version_01 BEFORE INSERT ON kernel_facts FOR EACH ROW WHEN (((new.principal IS NULL) AND starts_with(new.type, 'settlement.'::text) AND (new.subject ~ '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$'::text))) EXECUTE FUNCTION kernel_fact_of_version_01();

CREATE TABLE kernel_heartbeats (
    minute timestamp with time zone NOT NULL,
    CONSTRAINT kernel_heartbeats_pkey PRIMARY KEY (minute)
);

CREATE TABLE kernel_journal_epochs (
    epoch bigint NOT NULL,
    begins_after bigint NOT NULL,
    server text NOT NULL,
    CONSTRAINT kernel_journal_epochs_pkey PRIMARY KEY (epoch)
);
CREATE TRIGGER kernel_channels_of_new_epoch AFTER INSERT ON kernel_journal_epochs FOR EACH ROW EXECUTE FUNCTION kernel_channels_of_new_epoch();

CREATE TABLE kernel_key_replicas (
    replica text NOT NULL,
    revision integer NOT NULL,
    changes text NOT NULL,
    fault text,
    in_force text NOT NULL,
    refused text NOT NULL,
    seen_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT kernel_key_replicas_pkey PRIMARY KEY (replica)
);

CREATE TABLE kernel_key_rereads (
    revision integer NOT NULL,
    asked_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    asked_by text NOT NULL,
    part text NOT NULL,
    name text NOT NULL,
    without_overlap boolean NOT NULL,
    CONSTRAINT kernel_key_rereads_pkey PRIMARY KEY (revision)
);

CREATE TABLE kernel_key_rotations (
    network text NOT NULL,
    from_id text NOT NULL,
    to_id text NOT NULL,
    rotated_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    generation bigint,
    kind text DEFAULT 'sponsor'::text NOT NULL,
    state text DEFAULT 'prepared'::text NOT NULL,
    CONSTRAINT kernel_key_rotations_kind_check CHECK ((kind = ANY (ARRAY['sponsor'::text, 'channels'::text]))),
    CONSTRAINT kernel_key_rotations_state_check CHECK ((state = ANY (ARRAY['prepared'::text, 'taken'::text, 'done'::text]))),
    CONSTRAINT kernel_key_rotations_network_generation_key UNIQUE (network, generation),
    CONSTRAINT kernel_key_rotations_pkey PRIMARY KEY (network, from_id)
);

CREATE TABLE kernel_known_ledgers (
    network text NOT NULL,
    passphrase text NOT NULL,
    ledger bigint NOT NULL,
    hash text NOT NULL,
    closed_at timestamp with time zone NOT NULL,
    noted_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT kernel_known_ledgers_pkey PRIMARY KEY (network)
);

CREATE TABLE kernel_leases (
    name text NOT NULL,
    holder text NOT NULL,
    fence bigint DEFAULT 1 NOT NULL,
    until timestamp with time zone NOT NULL,
    CONSTRAINT kernel_leases_pkey PRIMARY KEY (name)
);

CREATE TABLE kernel_limits (
    name text NOT NULL,
    principal text DEFAULT ''::text NOT NULL,
    value bigint NOT NULL,
    changed_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT kernel_limits_value_check CHECK ((value >= 0)),
    CONSTRAINT kernel_limits_pkey PRIMARY KEY (name, principal)
);

CREATE TABLE kernel_lost_deliveries (
    network text NOT NULL,
    scheme text NOT NULL,
    authorization_key text NOT NULL,
    principal text NOT NULL,
    delivered_key text,
    noted_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT kernel_lost_deliveries_pkey PRIMARY KEY (network, scheme, authorization_key, principal)
);

CREATE TABLE kernel_lost_settlements (
    network text NOT NULL,
    transaction text NOT NULL,
    principal text NOT NULL,
    note text NOT NULL,
    given_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT kernel_lost_settlements_pkey PRIMARY KEY (network, transaction)
);

CREATE TABLE kernel_operator_acts (
    id bigint NOT NULL,
    at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    asked bigint,
    person text NOT NULL,
    via text NOT NULL,
    action text NOT NULL,
    subject text NOT NULL,
    reason text NOT NULL,
    before text,
    after text,
    outcome text NOT NULL,
    CONSTRAINT kernel_operator_acts_asked_key UNIQUE (asked),
    CONSTRAINT kernel_operator_acts_pkey PRIMARY KEY (id)
);
ALTER TABLE kernel_operator_acts ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY ( SEQUENCE NAME kernel_operator_acts_id_seq START WITH 1 INCREMENT BY 1 NO MINVALUE NO MAXVALUE CACHE 1 );
CREATE INDEX kernel_operator_acts_at ON kernel_operator_acts USING btree (at);
CREATE TRIGGER kernel_operator_acts_kept BEFORE TRUNCATE ON kernel_operator_acts FOR EACH STATEMENT EXECUTE FUNCTION kernel_operator_acts_stay();
CREATE TRIGGER kernel_operator_acts_stay BEFORE DELETE OR UPDATE ON kernel_operator_acts FOR EACH ROW EXECUTE FUNCTION kernel_operator_acts_stay();

CREATE TABLE kernel_processes (
    id text NOT NULL,
    beat_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT kernel_processes_pkey PRIMARY KEY (id)
);

CREATE TABLE kernel_rebuilds (
    settlement uuid NOT NULL,
    inner_hash text NOT NULL,
    rebuilt_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT kernel_rebuilds_pkey PRIMARY KEY (settlement, inner_hash)
);
CREATE INDEX kernel_rebuilds_inner_hash ON kernel_rebuilds USING btree (inner_hash);

CREATE TABLE kernel_revoked_keys (
    role text NOT NULL,
    digest text NOT NULL,
    principal text NOT NULL,
    revision integer NOT NULL,
    revoked_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT kernel_revoked_keys_role_check CHECK ((role = ANY (ARRAY['caller'::text, 'operator'::text]))),
    CONSTRAINT kernel_revoked_keys_pkey PRIMARY KEY (role, digest)
);

CREATE TABLE kernel_secrets (
    name text NOT NULL,
    secret text NOT NULL,
    CONSTRAINT kernel_secrets_pkey PRIMARY KEY (name)
);

CREATE TABLE kernel_settlements (
    id uuid NOT NULL,
    network text NOT NULL,
    scheme text NOT NULL,
    authorization_key text NOT NULL,
    authorization_expires_ledger bigint NOT NULL,
    fingerprint text NOT NULL,
    principal text NOT NULL,
    identifier text,
    payer text NOT NULL,
    pay_to text NOT NULL,
    asset text NOT NULL,
    amount_max numeric(39,0) NOT NULL,
    amount numeric(39,0) NOT NULL,
    resource_url text,
    inner_hash text NOT NULL,
    sponsor text NOT NULL,
    channel text NOT NULL,
    channel_sequence bigint NOT NULL,
    resource_fee_stroops bigint NOT NULL,
    recorded_ledger bigint NOT NULL,
    recorded_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    deadline_at timestamp with time zone NOT NULL,
    budget_day date NOT NULL,
    budget_stroops bigint NOT NULL,
    budget_shard integer NOT NULL,
    budget_keyed boolean NOT NULL,
    state text DEFAULT 'prepared'::text NOT NULL,
    resolved_at timestamp with time zone,
    ledger bigint,
    closed_at timestamp with time zone,
    moved numeric(39,0),
    fee_charged_stroops bigint,
    reason text,
    reason_message text,
    delivered_at timestamp with time zone,
    budget_principal text,
    ended_by text,
    attempt_count integer DEFAULT 1 NOT NULL,
    traceparent text,
    asked_at timestamp with time zone,
    verified_at timestamp with time zone,
    leased_at timestamp with time zone,
    attempts_void integer DEFAULT 0 NOT NULL,
    confirmations smallint,
    watch_after bigint,
    delivered_by text,
    delivered_claim bigint,
    delivered_key text,
    confirmed_at timestamp with time zone,
    action jsonb,
    CONSTRAINT kernel_settlements_amount_check CHECK ((amount >= (0)::numeric)),
    CONSTRAINT kernel_settlements_amount_max_check CHECK ((amount_max >= (0)::numeric)),
    CONSTRAINT kernel_settlements_attempt_count_check CHECK ((attempt_count > 0)),
    CONSTRAINT kernel_settlements_budget_stroops_check CHECK ((budget_stroops >= 0)),
    CONSTRAINT kernel_settlements_state_check CHECK ((state = ANY (ARRAY['prepared'::text, 'submitted'::text, 'settled'::text, 'failed'::text, 'expired'::text, 'unresolved'::text]))),
    CONSTRAINT kernel_settlements_authorization UNIQUE (network, scheme, authorization_key),
    CONSTRAINT kernel_settlements_inner_hash UNIQUE (network, inner_hash),
    CONSTRAINT kernel_settlements_pkey PRIMARY KEY (id)
);
ALTER TABLE kernel_settlements ADD CONSTRAINT kernel_settlements_confirmations_check CHECK ((confirmations = ANY (ARRAY[1, 2]))) NOT VALID;
CREATE INDEX kernel_settlements_age ON kernel_settlements USING brin (recorded_at);
CREATE INDEX kernel_settlements_by_identifier ON kernel_settlements USING btree (identifier) WHERE (identifier IS NOT NULL);
CREATE INDEX kernel_settlements_deposits ON kernel_settlements USING btree (budget_day, pay_to) WHERE (scheme = 'batch-settlement'::text);
CREATE UNIQUE INDEX kernel_settlements_ended_by ON kernel_settlements USING btree (network, ended_by) WHERE (ended_by IS NOT NULL);
CREATE UNIQUE INDEX kernel_settlements_identifier ON kernel_settlements USING btree (principal, pay_to, payer, identifier) WHERE (identifier IS NOT NULL);
CREATE INDEX kernel_settlements_open ON kernel_settlements USING btree (recorded_at) WHERE (state = ANY (ARRAY['prepared'::text, 'submitted'::text]));
CREATE INDEX kernel_settlements_unresolved ON kernel_settlements USING btree (recorded_at) WHERE (state = 'unresolved'::text);
CREATE INDEX kernel_settlements_watched ON kernel_settlements USING btree (network) WHERE (watch_after IS NOT NULL);
CREATE CONSTRAINT TRIGGER kernel_settlements_budget_of_version_01 AFTER UPDATE ON kernel_settlements DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (((new.budget_principal <> new.principal) AND (new.state <> ALL (ARRAY['prepared'::text, 'submitted'::text])) AND ((old.state = ANY (ARRAY['prepared'::text, 'submitted'::text])) OR (old.fee_charged_stroops IS DISTINCT FROM new.fee_charged_stroops)))) EXECUTE FUNCTION kernel_budget_of_version_01();
CREATE TRIGGER kernel_settlements_ended_by_version_01 BEFORE INSERT OR UPDATE ON kernel_settlements FOR EACH ROW WHEN (((new.state = 'settled'::text) AND (new.ended_by IS NULL))) EXECUTE FUNCTION kernel_ended_by_version_01();
CREATE TRIGGER kernel_settlements_of_version_01 BEFORE INSERT ON kernel_settlements FOR EACH ROW WHEN ((new.budget_principal IS NULL)) EXECUTE FUNCTION kernel_settlement_of_version_01();

CREATE TABLE kernel_signers (
    network text NOT NULL,
    replica text NOT NULL,
    sponsor text NOT NULL,
    channels_id text NOT NULL,
    seen_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT kernel_signers_pkey PRIMARY KEY (network, replica)
);

CREATE TABLE kernel_sponsor_budget (
    day date NOT NULL,
    principal text NOT NULL,
    reserved_stroops bigint DEFAULT 0 NOT NULL,
    committed_stroops bigint DEFAULT 0 NOT NULL,
    CONSTRAINT kernel_sponsor_budget_committed_stroops_check CHECK ((committed_stroops >= 0)),
    CONSTRAINT kernel_sponsor_budget_reserved_stroops_check CHECK ((reserved_stroops >= 0)),
    CONSTRAINT kernel_sponsor_budget_pkey PRIMARY KEY (day, principal)
);

CREATE TABLE kernel_sponsor_budget_total (
    day date NOT NULL,
    keyed boolean NOT NULL,
    shard integer NOT NULL,
    reserved_stroops bigint DEFAULT 0 NOT NULL,
    committed_stroops bigint DEFAULT 0 NOT NULL,
    CONSTRAINT kernel_sponsor_budget_total_pkey PRIMARY KEY (day, keyed, shard)
);

CREATE TABLE kernel_sponsor_transactions (
    hash text NOT NULL,
    network text NOT NULL,
    sponsor text NOT NULL,
    purpose text NOT NULL,
    envelope bytea NOT NULL,
    ledger_max bigint NOT NULL,
    recorded_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    state text DEFAULT 'open'::text NOT NULL,
    fee_charged_stroops bigint,
    ledger bigint,
    CONSTRAINT kernel_sponsor_transactions_state_check CHECK ((state = ANY (ARRAY['open'::text, 'landed'::text, 'failed'::text, 'expired'::text]))),
    CONSTRAINT kernel_sponsor_transactions_pkey PRIMARY KEY (hash)
);
CREATE INDEX kernel_sponsor_transactions_newest ON kernel_sponsor_transactions USING btree (network, sponsor, recorded_at);
CREATE UNIQUE INDEX kernel_sponsor_transactions_one_open ON kernel_sponsor_transactions USING btree (network, sponsor) WHERE (state = 'open'::text);

CREATE TABLE kernel_write_probes (
    id bigint NOT NULL,
    replica text NOT NULL,
    probed_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    filler text NOT NULL,
    CONSTRAINT kernel_write_probes_pkey PRIMARY KEY (id)
)
WITH (fillfactor='10', autovacuum_vacuum_threshold='200', autovacuum_vacuum_scale_factor='0');
ALTER TABLE ONLY kernel_write_probes ALTER COLUMN filler SET STORAGE PLAIN;
ALTER TABLE kernel_write_probes ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY ( SEQUENCE NAME kernel_write_probes_id_seq START WITH 1 INCREMENT BY 1 NO MINVALUE NO MAXVALUE CACHE 1 );

CREATE TABLE mcp_tools_approvals (
    id text NOT NULL,
    state text NOT NULL,
    agent text NOT NULL,
    kind text NOT NULL,
    origin text,
    asset text NOT NULL,
    pay_to text NOT NULL,
    amount numeric(39,0) NOT NULL,
    rule text NOT NULL,
    asked_at timestamp with time zone NOT NULL,
    mark text NOT NULL,
    bought jsonb,
    asked_until timestamp with time zone,
    CONSTRAINT mcp_tools_approvals_amount_check CHECK ((amount > (0)::numeric)),
    CONSTRAINT mcp_tools_approvals_kind_check CHECK ((kind = ANY (ARRAY['http'::text, 'mcp'::text]))),
    CONSTRAINT mcp_tools_approvals_state_check CHECK ((state = ANY (ARRAY['pending'::text, 'approved'::text, 'denied'::text, 'used'::text]))),
    CONSTRAINT mcp_tools_approvals_pkey PRIMARY KEY (id)
);
CREATE INDEX mcp_tools_approvals_asked ON mcp_tools_approvals USING btree (asked_at);

CREATE TABLE mcp_tools_reservations (
    id text NOT NULL,
    day date NOT NULL,
    agent text NOT NULL,
    session text NOT NULL,
    invocation text NOT NULL,
    network text NOT NULL,
    asset text NOT NULL,
    pay_to text NOT NULL,
    amount numeric(39,0) NOT NULL,
    state text NOT NULL,
    created_at timestamp with time zone NOT NULL,
    payer text,
    nonce numeric(20,0),
    expiration_ledger bigint,
    transaction text,
    origin text,
    grade text,
    payment text,
    content text,
    receipt text,
    acknowledged_at timestamp with time zone,
    ledger_seconds bigint,
    CONSTRAINT mcp_tools_reservations_amount_check CHECK ((amount > (0)::numeric)),
    CONSTRAINT mcp_tools_reservations_check CHECK (((state = ANY (ARRAY['reserved'::text, 'released'::text])) OR ((payer IS NOT NULL) AND (nonce IS NOT NULL) AND (expiration_ledger IS NOT NULL)))),
    CONSTRAINT mcp_tools_reservations_grade_check CHECK ((grade = ANY (ARRAY['proven'::text, 'provisional'::text]))),
    CONSTRAINT mcp_tools_reservations_state_check CHECK ((state = ANY (ARRAY['reserved'::text, 'signed'::text, 'unknown'::text, 'spent'::text, 'acknowledged'::text, 'settled'::text, 'released'::text]))),
    CONSTRAINT mcp_tools_reservations_pkey PRIMARY KEY (id)
);
CREATE INDEX mcp_tools_reservations_acknowledged ON mcp_tools_reservations USING btree (acknowledged_at) WHERE (state = 'acknowledged'::text);
CREATE INDEX mcp_tools_reservations_content ON mcp_tools_reservations USING btree (id) WHERE (content IS NOT NULL);
CREATE INDEX mcp_tools_reservations_ended ON mcp_tools_reservations USING btree (created_at) WHERE (state = ANY (ARRAY['spent'::text, 'settled'::text, 'released'::text]));
CREATE INDEX mcp_tools_reservations_invocation ON mcp_tools_reservations USING btree (invocation, created_at);
CREATE INDEX mcp_tools_reservations_open ON mcp_tools_reservations USING btree (created_at) WHERE (state = ANY (ARRAY['reserved'::text, 'signed'::text, 'unknown'::text]));
CREATE INDEX mcp_tools_reservations_receipts ON mcp_tools_reservations USING btree (agent, created_at) WHERE (receipt IS NOT NULL);
CREATE INDEX mcp_tools_reservations_spent ON mcp_tools_reservations USING btree (day, agent, network, asset) WHERE (state <> 'released'::text);

CREATE TABLE receipts_channels (
    channel bytea NOT NULL,
    payer text NOT NULL,
    transaction bytea,
    CONSTRAINT receipts_channels_pkey PRIMARY KEY (channel, payer)
);

CREATE TABLE receipts_checkpoints (
    epoch integer NOT NULL,
    size bigint NOT NULL,
    root bytea NOT NULL,
    note text NOT NULL,
    signed_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT receipts_checkpoints_pkey PRIMARY KEY (epoch, size)
);

CREATE TABLE receipts_epochs (
    epoch integer NOT NULL,
    server text NOT NULL,
    size bigint DEFAULT 0 NOT NULL,
    begun_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    reason text,
    previous_size bigint,
    previous_root bytea,
    statement text,
    name text,
    previous_origin text,
    fork text,
    ended text,
    published jsonb,
    map_secret bytea,
    map_size bigint DEFAULT 0 NOT NULL,
    map_since timestamp with time zone,
    anchoring text,
    anchored_at timestamp with time zone,
    anchor jsonb,
    CONSTRAINT receipts_epochs_name_key UNIQUE (name),
    CONSTRAINT receipts_epochs_pkey PRIMARY KEY (epoch)
);

CREATE TABLE receipts_keys (
    kid text NOT NULL,
    purpose text NOT NULL,
    public_key bytea NOT NULL,
    valid_from timestamp with time zone NOT NULL,
    valid_until timestamp with time zone,
    preferred_at timestamp with time zone DEFAULT clock_timestamp(),
    CONSTRAINT receipts_keys_purpose_check CHECK ((purpose = ANY (ARRAY['receipt'::text, 'log'::text, 'attestation'::text]))),
    CONSTRAINT receipts_keys_pkey PRIMARY KEY (kid, valid_from)
);

CREATE TABLE receipts_leaves (
    epoch integer NOT NULL,
    index bigint NOT NULL,
    entry bytea NOT NULL,
    salt bytea,
    record text,
    transaction bytea,
    principal text,
    payer text,
    pay_to text,
    erased_transaction bytea,
    erased_at timestamp with time zone,
    CONSTRAINT receipts_leaves_pkey PRIMARY KEY (epoch, index)
);
CREATE INDEX receipts_leaves_erased ON receipts_leaves USING btree (erased_transaction) WHERE (erased_transaction IS NOT NULL);
CREATE INDEX receipts_leaves_public ON receipts_leaves USING btree (epoch, index) WHERE (salt IS NULL);
CREATE INDEX receipts_leaves_transaction ON receipts_leaves USING btree (transaction) WHERE (transaction IS NOT NULL);

CREATE TABLE receipts_map (
    epoch integer NOT NULL,
    key bytea NOT NULL,
    index bigint NOT NULL,
    value bytea NOT NULL,
    CONSTRAINT receipts_map_pkey PRIMARY KEY (epoch, key, index)
);

CREATE TABLE receipts_map_pages (
    epoch integer NOT NULL,
    prefix text NOT NULL,
    size bigint NOT NULL,
    subtrees bytea NOT NULL,
    CONSTRAINT receipts_map_pages_pkey PRIMARY KEY (epoch, prefix, size)
);

CREATE TABLE receipts_nodes (
    epoch integer NOT NULL,
    level smallint NOT NULL,
    index bigint NOT NULL,
    hash bytea NOT NULL,
    CONSTRAINT receipts_nodes_pkey PRIMARY KEY (epoch, level, index)
);

CREATE TABLE receipts_receipts (
    transaction bytea NOT NULL,
    network text NOT NULL,
    jws text NOT NULL,
    attestation text,
    CONSTRAINT receipts_receipts_pkey PRIMARY KEY (transaction, network)
);

CREATE TABLE search_lexical_documents (
    language text NOT NULL,
    id bigint NOT NULL,
    version integer NOT NULL,
    document tsvector NOT NULL,
    origin bigint,
    xid xid8 DEFAULT '0'::xid8 NOT NULL,
    CONSTRAINT search_lexical_documents_pkey PRIMARY KEY (language, id)
);
CREATE INDEX search_lexical_documents_gin ON search_lexical_documents USING gin (document) WITH (fastupdate=off);
CREATE INDEX search_lexical_documents_xid ON search_lexical_documents USING btree (language, xid, id);
CREATE TRIGGER search_lexical_documents_followed BEFORE INSERT OR UPDATE ON search_lexical_documents FOR EACH ROW EXECUTE FUNCTION search_lexical_note_transaction();

CREATE TABLE search_lexical_state (
    language text NOT NULL,
    scanned bigint DEFAULT 0 NOT NULL,
    complete boolean DEFAULT false NOT NULL,
    documents integer DEFAULT 0 NOT NULL,
    average_lexemes double precision DEFAULT 1 NOT NULL,
    changed integer DEFAULT 0 NOT NULL,
    refreshed_at timestamp with time zone DEFAULT '1970-01-01 00:00:00+00'::timestamp with time zone NOT NULL,
    begun_at timestamp with time zone DEFAULT '1970-01-01 00:00:00+00'::timestamp with time zone NOT NULL,
    spoken text DEFAULT ''::text NOT NULL,
    origins integer DEFAULT 0 NOT NULL,
    proven boolean DEFAULT false NOT NULL,
    CONSTRAINT search_lexical_state_pkey PRIMARY KEY (language)
);

CREATE TABLE search_lexical_terms (
    language text NOT NULL,
    lexeme text NOT NULL COLLATE pg_catalog."C",
    documents integer NOT NULL,
    naming integer DEFAULT 0 NOT NULL,
    grams text[] NOT NULL,
    origins integer DEFAULT 0 NOT NULL,
    CONSTRAINT search_lexical_terms_pkey PRIMARY KEY (language, lexeme)
);
CREATE INDEX search_lexical_terms_grams ON search_lexical_terms USING gin (grams) WITH (fastupdate=off);

CREATE TABLE search_semantic_generations (
    id bigint NOT NULL,
    fingerprint text NOT NULL,
    provider text NOT NULL,
    url text NOT NULL,
    model text NOT NULL,
    revision text NOT NULL,
    dimension integer NOT NULL,
    pooling text NOT NULL,
    normalization text NOT NULL,
    query_prefix text NOT NULL,
    document_prefix text NOT NULL,
    method text NOT NULL,
    status text DEFAULT 'building'::text NOT NULL,
    detail text,
    scanned bigint DEFAULT 0 NOT NULL,
    scan_complete boolean DEFAULT false NOT NULL,
    created_at timestamp with time zone NOT NULL,
    activated_at timestamp with time zone,
    retired_at timestamp with time zone,
    dropped boolean DEFAULT false NOT NULL,
    stored bigint DEFAULT 0 NOT NULL,
    CONSTRAINT search_semantic_generations_dimension_check CHECK ((dimension > 0)),
    CONSTRAINT search_semantic_generations_method_check CHECK ((method = ANY (ARRAY['hnsw'::text, 'scan'::text]))),
    CONSTRAINT search_semantic_generations_status_check CHECK ((status = ANY (ARRAY['building'::text, 'active'::text, 'retired'::text, 'failed'::text]))),
    CONSTRAINT search_semantic_generations_pkey PRIMARY KEY (id)
);
ALTER TABLE search_semantic_generations ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY ( SEQUENCE NAME search_semantic_generations_id_seq START WITH 1 INCREMENT BY 1 NO MINVALUE NO MAXVALUE CACHE 1 );
CREATE UNIQUE INDEX search_semantic_generations_active ON search_semantic_generations USING btree ((true)) WHERE (status = 'active'::text);
CREATE UNIQUE INDEX search_semantic_generations_live ON search_semantic_generations USING btree (fingerprint) WHERE (status = ANY (ARRAY['building'::text, 'active'::text]));

CREATE TABLE search_semantic_jobs (
    generation bigint NOT NULL,
    id bigint NOT NULL,
    state text DEFAULT 'due'::text NOT NULL,
    attempts integer DEFAULT 0 NOT NULL,
    due_at timestamp with time zone NOT NULL,
    fence bigint DEFAULT 0 NOT NULL,
    leased_until timestamp with time zone,
    error text,
    CONSTRAINT search_semantic_jobs_state_check CHECK ((state = ANY (ARRAY['due'::text, 'dead'::text]))),
    CONSTRAINT search_semantic_jobs_pkey PRIMARY KEY (generation, id)
);
CREATE INDEX search_semantic_jobs_due ON search_semantic_jobs USING btree (due_at) WHERE (state = 'due'::text);

CREATE TABLE search_semantic_word_vectors (
    id bigint NOT NULL,
    embedding bytea NOT NULL,
    xid xid8 DEFAULT pg_current_xact_id() NOT NULL,
    CONSTRAINT search_semantic_word_vectors_pkey PRIMARY KEY (id)
);
CREATE INDEX search_semantic_word_vectors_xid ON search_semantic_word_vectors USING btree (xid);

CREATE TABLE search_semantic_words (
    revision text NOT NULL,
    scanned bigint DEFAULT 0 NOT NULL,
    complete boolean DEFAULT false NOT NULL,
    CONSTRAINT search_semantic_words_pkey PRIMARY KEY (revision)
);

CREATE TABLE webhooks_deliveries (
    id bigint NOT NULL,
    receiver text NOT NULL,
    "position" bigint NOT NULL,
    type text NOT NULL,
    settlement uuid NOT NULL,
    told_at timestamp with time zone NOT NULL,
    state text DEFAULT 'due'::text NOT NULL,
    queued_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    due_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    attempts integer DEFAULT 0 NOT NULL,
    leased_until timestamp with time zone,
    fence bigint DEFAULT 0 NOT NULL,
    last_answer text,
    ended_at timestamp with time zone,
    body text,
    principal text,
    CONSTRAINT webhooks_deliveries_state_check CHECK ((state = ANY (ARRAY['due'::text, 'delivered'::text, 'given_up'::text]))),
    CONSTRAINT webhooks_deliveries_event UNIQUE (receiver, "position"),
    CONSTRAINT webhooks_deliveries_pkey PRIMARY KEY (id)
);
ALTER TABLE webhooks_deliveries ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY ( SEQUENCE NAME webhooks_deliveries_id_seq START WITH 1 INCREMENT BY 1 NO MINVALUE NO MAXVALUE CACHE 1 );
CREATE INDEX webhooks_deliveries_due ON webhooks_deliveries USING btree (receiver, due_at) WHERE (state = 'due'::text);
CREATE INDEX webhooks_deliveries_ended ON webhooks_deliveries USING btree (ended_at) WHERE (state <> 'due'::text);
CREATE INDEX webhooks_deliveries_given_up ON webhooks_deliveries USING btree (id DESC) WHERE (state = 'given_up'::text);
CREATE INDEX webhooks_deliveries_order ON webhooks_deliveries USING btree (receiver, settlement, "position") WHERE (state = 'due'::text);
CREATE INDEX webhooks_deliveries_receiver ON webhooks_deliveries USING btree (receiver, id DESC);
CREATE INDEX webhooks_deliveries_settlement ON webhooks_deliveries USING btree (settlement);

CREATE TABLE webhooks_disabled (
    receiver text NOT NULL,
    disabled_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT webhooks_disabled_pkey PRIMARY KEY (receiver)
);

CREATE TABLE webhooks_pauses (
    receiver text NOT NULL,
    until timestamp with time zone NOT NULL,
    CONSTRAINT webhooks_pauses_pkey PRIMARY KEY (receiver)
);

CREATE UNLOGGED TABLE webhooks_receivers (
    receiver text NOT NULL,
    principal text NOT NULL,
    seen_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT webhooks_receivers_pkey PRIMARY KEY (receiver, principal)
);

ALTER TABLE ONLY catalog_activity ADD CONSTRAINT catalog_activity_resource_id_fkey FOREIGN KEY (resource_id) REFERENCES catalog_resources(id) ON DELETE CASCADE;
ALTER TABLE ONLY catalog_claim_payers ADD CONSTRAINT catalog_claim_payers_resource_id_fkey FOREIGN KEY (resource_id) REFERENCES catalog_resources(id) ON DELETE CASCADE;
ALTER TABLE ONLY catalog_claims ADD CONSTRAINT catalog_claims_resource_id_fkey FOREIGN KEY (resource_id) REFERENCES catalog_resources(id) ON DELETE CASCADE;
ALTER TABLE ONLY catalog_contenders ADD CONSTRAINT catalog_contenders_resource_id_fkey FOREIGN KEY (resource_id) REFERENCES catalog_resources(id) ON DELETE CASCADE;
ALTER TABLE ONLY catalog_decisions ADD CONSTRAINT catalog_decisions_resource_id_fkey FOREIGN KEY (resource_id) REFERENCES catalog_resources(id) ON DELETE CASCADE;
ALTER TABLE ONLY catalog_looks ADD CONSTRAINT catalog_looks_resource_id_fkey FOREIGN KEY (resource_id) REFERENCES catalog_resources(id) ON DELETE CASCADE;
ALTER TABLE ONLY catalog_options ADD CONSTRAINT catalog_options_resource_id_fkey FOREIGN KEY (resource_id) REFERENCES catalog_resources(id) ON DELETE CASCADE;
ALTER TABLE ONLY catalog_payers ADD CONSTRAINT catalog_payers_resource_id_fkey FOREIGN KEY (resource_id) REFERENCES catalog_resources(id) ON DELETE CASCADE;
ALTER TABLE ONLY catalog_probes ADD CONSTRAINT catalog_probes_resource_id_fkey FOREIGN KEY (resource_id) REFERENCES catalog_resources(id) ON DELETE CASCADE;
ALTER TABLE ONLY catalog_signatures ADD CONSTRAINT catalog_signatures_resource_id_fkey FOREIGN KEY (resource_id) REFERENCES catalog_resources(id) ON DELETE CASCADE;
ALTER TABLE ONLY catalog_versions ADD CONSTRAINT catalog_versions_resource_id_fkey FOREIGN KEY (resource_id) REFERENCES catalog_resources(id) ON DELETE CASCADE;
ALTER TABLE ONLY catalog_words ADD CONSTRAINT catalog_words_resource_id_fkey FOREIGN KEY (resource_id) REFERENCES catalog_resources(id) ON DELETE CASCADE;
ALTER TABLE ONLY kernel_attempts ADD CONSTRAINT kernel_attempts_settlement_fkey FOREIGN KEY (settlement) REFERENCES kernel_settlements(id);
ALTER TABLE ONLY kernel_channels ADD CONSTRAINT kernel_channels_settlement_fkey FOREIGN KEY (settlement) REFERENCES kernel_settlements(id);
ALTER TABLE ONLY kernel_rebuilds ADD CONSTRAINT kernel_rebuilds_settlement_fkey FOREIGN KEY (settlement) REFERENCES kernel_settlements(id) ON DELETE CASCADE;
ALTER TABLE ONLY search_semantic_jobs ADD CONSTRAINT search_semantic_jobs_generation_fkey FOREIGN KEY (generation) REFERENCES search_semantic_generations(id) ON DELETE CASCADE;
