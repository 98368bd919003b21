-- Keys that were changed while replicas run: a replica that still signs as `from_id` looks for those of `to_id` in its own sources.
create table kernel_key_rotations (
  network text not null,
  from_id text not null,
  to_id text not null,
  rotated_at timestamptz not null default clock_timestamp(),
  primary key (network, from_id)
);
