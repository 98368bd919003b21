-- How often a call was paid for is counted when it is looked at and again when it is reserved: whoever reserves meanwhile is noticed.
drop index mcp_tools_reservations_invocation;
create index mcp_tools_reservations_invocation on mcp_tools_reservations (invocation, created_at);
