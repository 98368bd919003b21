-- Rows of sessions are counted by account and by source, ended ones too: each bounds how many one caller may write.
drop index kernel_account_sessions_account;
drop index kernel_account_sessions_source;
create index kernel_account_sessions_account on kernel_account_sessions (account, opened_at);
create index kernel_account_sessions_source on kernel_account_sessions (source, opened_at);
