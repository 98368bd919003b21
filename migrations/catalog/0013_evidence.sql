-- Evidence for words that payments claimed. Among claims, the words that settled for the most distinct payers are shown; so what each claim
-- says and which payers settled for it is kept apart from what is listed.
create table catalog_contenders (
  resource_id bigint not null references catalog_resources (id) on delete cascade,
  -- Version hash of the words that this declaration alone makes.
  claim text not null,
  pay_to text not null,
  declaration jsonb not null,
  first_at timestamptz not null,
  last_at timestamptz not null,
  -- When a settled payment carried it last; null for one that was only verified.
  settled_at timestamptz,
  primary key (resource_id, claim)
);
create table catalog_claim_payers (
  resource_id bigint not null references catalog_resources (id) on delete cascade,
  claim text not null,
  payer text not null,
  at timestamptz not null,
  primary key (resource_id, claim, payer)
);
create index catalog_claim_payers_at on catalog_claim_payers (at);
-- Whose words a payer of the past settled for is not known; what is shown keeps them.
insert into catalog_claim_payers (resource_id, claim, payer, at)
  select r.id, r.version_hash, p.payer, p.last_settled_at from catalog_resources r join catalog_payers p on p.resource_id = r.id
  where r.grade = 'claimed' and p.counts and not p.circle;

-- Signatures by which a recipient's account declared words of a resource: one that a later one replaced declares nothing any more.
create table catalog_signatures (
  resource_id bigint not null references catalog_resources (id) on delete cascade,
  -- sha256 hex.
  signature text not null,
  at timestamptz not null,
  -- It is the newest of its operation: the HTTP method, empty for MCP.
  operation text not null,
  is_current boolean not null,
  primary key (resource_id, signature)
);

alter table catalog_resources
  -- Since when it has said what it says: a copy is younger than its original whichever row is older. Null: since it was listed.
  add column words_at timestamptz,
  -- The payer whose payment, only verified, listed it; null where a settlement, its owner or its origin did.
  add column listed_by text;
update catalog_resources r set words_at = v.at from (
    select resource_id, max(at) as at from (
      select resource_id, at, words is distinct from lag(words) over (partition by resource_id order by version) as is_new
      from (select resource_id, version, at, md5(concat_ws(' ', document::jsonb->>'serviceName', document::jsonb->>'description',
        document::jsonb->>'tags')) as words from catalog_versions) said
    ) changed where is_new group by resource_id
  ) v where v.resource_id = r.id;

-- Paths that an origin's own documents name, in the loosest spelling: no template of somebody else answers for them.
create table catalog_named_paths (
  origin text not null,
  path text not null,
  at timestamptz not null,
  primary key (origin, path)
);
create index catalog_named_paths_at on catalog_named_paths (at);
