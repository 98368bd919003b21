-- The body of a message, fixed when it is queued: every delivery under one id is the same. Null for what an earlier
-- version queued and for replays of what was never queued; the first attempt fixes those.
alter table webhooks_deliveries add column body text;
