-- The trace of the request that recorded a settlement, as W3C writes it (`00-trace-span-flags`): its end, which another
-- process may see, belongs to the same trace, and an operator finds what was logged and traced of a payment.
alter table kernel_settlements add column traceparent text;
