-- When a probe last found nobody at a listing's origin; null once it answers. Search ranks such a listing below the others.
alter table catalog_probes add column gone_at timestamptz;
