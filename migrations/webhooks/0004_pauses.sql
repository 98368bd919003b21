-- Until when a receiver that asked for a pause (Retry-After) is sent nothing, by any replica. A replay ends it.
create table webhooks_pauses (
  receiver text primary key,
  until timestamptz not null
);
