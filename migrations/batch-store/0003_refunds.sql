-- A refund that was signed for a channel: until the ledger shows that its nonce has moved or its time is over it may be
-- paid out by anyone, and nothing is sold below it.
alter table batch_store_channels
  -- Null: none is pending.
  add column refund_amount numeric(39),
  -- The request that it was signed for.
  add column refund_payment text,
  add column refund_for_nonce numeric(39),
  -- The last close time at which it counts, Unix seconds.
  add column refund_expires_at bigint;
