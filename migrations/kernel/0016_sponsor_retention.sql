-- The sponsor's own transactions leave by age, and the newest ones of a sponsor are asked for with each look at its
-- channels.
create index kernel_sponsor_transactions_newest on kernel_sponsor_transactions (network, sponsor, recorded_at);
