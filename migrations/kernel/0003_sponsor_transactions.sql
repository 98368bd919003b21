-- One transaction of a sponsor's own is open at a time, so that its sequence number is never used twice: two replicas that boot
-- together cannot both create the channels.
create unique index kernel_sponsor_transactions_one_open on kernel_sponsor_transactions (network, sponsor) where state = 'open';
drop index kernel_sponsor_transactions_open;
