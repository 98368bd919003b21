-- Browser sessions of keys that were signed out of, until they would have ended anyway: a copy of the cookie is worth
-- nothing on any replica. A session that was not signed out of has no row.
create table kernel_ended_sessions (
  -- The random part of the cookie, without its signature.
  session text primary key,
  until timestamptz not null
);
create index kernel_ended_sessions_until on kernel_ended_sessions (until);
