-- Whose settings want a channel, said again each minute: replicas with other settings or other keys leave it alone until
-- that has lapsed. A number is a place in one list of keys, and says nothing across two.
alter table kernel_channels add column wanted_by text;
alter table kernel_channels add column wanted_until timestamptz not null default clock_timestamp() + interval '3 minutes';
alter table kernel_channels drop constraint kernel_channels_number;
