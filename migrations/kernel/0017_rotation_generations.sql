-- A rotation of keys has a generation, one above the newest of its network: a replica that is several rotations behind
-- finds the newest without following them one by one. The row is written (prepared) before any replica signs with the
-- new keys, is taken once one does, and done once every live replica does. Sponsor and channels are rotated each in a
-- chain of their own, since replicas with one sponsor may have different channels. Rows without a generation, of
-- replicas of the previous version, are ignored.
delete from kernel_key_rotations;
alter table kernel_key_rotations
  add column generation bigint,
  add column kind text not null default 'sponsor' check (kind in ('sponsor', 'channels')),
  add column state text not null default 'prepared' check (state in ('prepared', 'taken', 'done')),
  add unique (network, generation);

-- The replicas that run, and the keys with which each signs: the sponsor's address, and a name of its channels.
create table kernel_signers (
  network text not null,
  replica text not null,
  sponsor text not null,
  channels_id text not null,
  seen_at timestamptz not null default clock_timestamp(),
  primary key (network, replica)
);
