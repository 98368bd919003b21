-- The audit trail is the kernel's now: what it held before is copied, and this table goes one version later.
insert into kernel_operator_acts (at, person, via, action, subject, reason, outcome)
  select at, by, 'earlier', move, subject, note, 'asked' from dashboard_moves order by id;
insert into kernel_operator_acts (at, asked, person, via, action, subject, reason, outcome)
  select a.at, a.id, a.person, a.via, a.action, a.subject, a.reason, max(m.outcome)
  from kernel_operator_acts a join dashboard_moves m
    on m.at = a.at and m.by = a.person and m.move = a.action and m.subject = a.subject
  where a.via = 'earlier' and a.asked is null and m.outcome <> 'asked'
  group by a.at, a.id, a.person, a.via, a.action, a.subject, a.reason;
