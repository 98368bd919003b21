-- What any replica needs to finish an agent's payment: the signed payment with its terms, and content that came before the ledger showed the
-- payment. Both are encrypted by the tool server (a signed payment is money to whoever has it until it expires), kept as long as the
-- reservation is open or its content undelivered, and empty otherwise.
alter table mcp_tools_reservations add column payment text, add column content text;

create index mcp_tools_reservations_content on mcp_tools_reservations (id) where content is not null;
