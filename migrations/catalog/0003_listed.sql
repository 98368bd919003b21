-- Browsing and counting without reading a document: one index holds, in the order of browsing, what decides whether a resource is
-- shown. It serves what the indexes by type and by state served.
create index catalog_resources_listed on catalog_resources (id desc) include (state, verification, type, extensions);
drop index catalog_resources_type;
drop index catalog_resources_state;
