-- Moves whose end is known leave by age.
create index dashboard_moves_ended on dashboard_moves (at) where outcome <> 'asked';
