-- Ended settlements leave by age. They come in the order of their time, so that a summary of blocks finds the oldest
-- and costs a payment nothing.
create index kernel_settlements_age on kernel_settlements using brin (recorded_at);
