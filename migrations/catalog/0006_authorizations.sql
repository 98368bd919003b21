-- Payers' authorizations that have listed a resource: each lists one. Signing another costs a payer who only has payments verified
-- nothing, but naming ten thousand URLs over one signature must not make ten thousand listings.
create table catalog_authorizations (
  -- What the ledger takes once: network, scheme, address and nonce. Opaque.
  authorization_key text primary key,
  at timestamptz not null
);
create index catalog_authorizations_at on catalog_authorizations (at);
