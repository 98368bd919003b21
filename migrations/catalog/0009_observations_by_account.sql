-- What was observed of one recipient, for the session of that account.
create index catalog_observations_pay_to on catalog_observations (pay_to, last_at desc, id desc);
