-- Somebody stood for the listing when its look was asked for or done last: those are looked at by a queue of their own, so that what strangers
-- claim below an origin delays nobody's prices.
alter table catalog_probes add column stands boolean not null default false;
update catalog_probes p set stands = true from catalog_resources r where r.id = p.resource_id and r.standing_at is not null;
drop index catalog_probes_due;
create index catalog_probes_due on catalog_probes (stands, due_at);
