-- A look that is due because of a payment that cost its payer nothing: it has a part of its origin's questions, so that
-- such payments use up none of those for what a seller's own payments ask for. A replica of before leaves it false.
alter table catalog_probes add column free boolean not null default false;
