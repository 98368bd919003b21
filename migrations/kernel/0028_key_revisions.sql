-- Rereads of keys and secrets that an operator asked a replica for. Every replica reads its own files again for each.
create table kernel_key_rereads (
  revision integer primary key,
  asked_at timestamptz not null default clock_timestamp(),
  asked_by text not null,
  -- What is read again: `all`, or one part by its name, and there one name or, when it is empty, all.
  part text not null,
  name text not null,
  -- Whether that one changes without an overlap: its secret has leaked.
  without_overlap boolean not null
);
-- Keys that a reread removed. Every replica refuses them, also one whose own file still lists them. A later reread that
-- adds the key deletes the row.
create table kernel_revoked_keys (
  role text not null check (role in ('caller', 'operator')),
  -- A digest from which no session can be signed.
  digest text not null,
  principal text not null,
  revision integer not null,
  revoked_at timestamptz not null default clock_timestamp(),
  primary key (role, digest)
);
-- Running replicas, and what the last reread changed at each.
create table kernel_key_replicas (
  replica text primary key,
  revision integer not null,
  changes text not null,
  fault text,
  -- Keys and secrets that count there, and those of its file that are revoked: JSON lists of names.
  in_force text not null,
  refused text not null,
  seen_at timestamptz not null default clock_timestamp()
);
