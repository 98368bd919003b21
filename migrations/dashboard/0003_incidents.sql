-- Minutes in which the condition of an alert held at some replica: an incident is a run of them. Replicas that see the
-- same write the same row; one that cannot write keeps its minutes until it can.
create table dashboard_incidents (
  cause text not null,
  minute timestamptz not null,
  primary key (cause, minute)
);
create index dashboard_incidents_minute on dashboard_incidents (minute);
