-- A request for approval says what is bought, and who is asked now: of all calls of one invocation, at whichever replica, one asks its
-- person. A used approval stays for the minutes in which its twins, which waited for the same answer, find it.
alter table mcp_tools_approvals add column bought jsonb;
alter table mcp_tools_approvals add column asked_until timestamptz;
alter table mcp_tools_approvals drop constraint mcp_tools_approvals_state_check;
alter table mcp_tools_approvals add constraint mcp_tools_approvals_state_check
  check (state in ('pending', 'approved', 'denied', 'used'));
