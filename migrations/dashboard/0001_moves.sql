-- What operators did from the pages: asked before it is done, with how it went after.
create table dashboard_moves (
  id bigint generated always as identity primary key,
  at timestamptz not null default clock_timestamp(),
  by text not null,
  move text not null,
  subject text not null,
  note text not null,
  outcome text not null default 'asked'
);
