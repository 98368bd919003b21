-- Deliveries as operators list them: of one receiver, of one settlement, and those that were given up.
create index webhooks_deliveries_receiver on webhooks_deliveries (receiver, id desc);
create index webhooks_deliveries_settlement on webhooks_deliveries (settlement);
create index webhooks_deliveries_given_up on webhooks_deliveries (id desc) where state = 'given_up';
