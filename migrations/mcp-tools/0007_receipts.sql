-- The facilitator's signed receipt of a payment, as its seller passed it on; it leaves with its reservation.
alter table mcp_tools_reservations add column receipt text;

create index mcp_tools_reservations_receipts on mcp_tools_reservations (agent, created_at) where receipt is not null;
