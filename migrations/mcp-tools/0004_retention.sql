-- Reservations whose end is known leave by age.
create index mcp_tools_reservations_ended on mcp_tools_reservations (created_at) where state in ('spent', 'settled', 'released');
