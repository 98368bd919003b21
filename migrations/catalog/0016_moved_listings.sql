-- When the recipient's account signed the last move of the listing to another origin. An older signature does not move it.
alter table catalog_resources add column moved_at timestamptz;
