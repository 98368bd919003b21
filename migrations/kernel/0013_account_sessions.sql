-- Secrets of the kernel that no setting names: each made once, by whichever replica comes first.
create table kernel_secrets (
  name text primary key,
  secret text not null
);

-- Sessions of accounts in a browser: one for each challenge that was answered, so that none is answered twice.
create table kernel_account_sessions (
  -- sha256 hex of the challenge that was signed.
  challenge text primary key,
  -- sha256 hex of the cookie's token.
  token text not null unique,
  account text not null,
  -- Where it was opened from, under a key: for a bound on how many one place opens.
  source text not null,
  opened_at timestamptz not null,
  until timestamptz not null,
  -- When it was signed out of.
  ended_at timestamptz
);
create index kernel_account_sessions_account on kernel_account_sessions (account) where ended_at is null;
create index kernel_account_sessions_source on kernel_account_sessions (source, opened_at) where ended_at is null;
create index kernel_account_sessions_until on kernel_account_sessions (until);
