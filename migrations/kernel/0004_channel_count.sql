-- How many channels an operator wants, where that is not what the settings say.
create table kernel_channel_counts (
  network text primary key,
  count integer not null check (count between 1 and 1000),
  changed_at timestamptz not null default clock_timestamp()
);

-- Retiring: no longer lent, to be merged into the sponsor once nothing holds it. Merging: the transaction that does so is open.
-- Retired: the account is gone.
alter table kernel_channels drop constraint kernel_channels_state_check;
alter table kernel_channels add constraint kernel_channels_state_check check (state in ('wanted', 'ready', 'retiring', 'merging', 'retired'));
update kernel_channels set state = 'retiring' where state = 'retired';
