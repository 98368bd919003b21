-- Settled payments that were counted for a resource, each once, whichever replica saw it and however often its success was read again.
-- Kept for longer than a stored success can be asked for.
create table catalog_sales (
  -- Inner hash, hex: the identity of a settled payment.
  transaction text primary key,
  resource_id bigint not null,
  at timestamptz not null
);
create index catalog_sales_at on catalog_sales (at);
