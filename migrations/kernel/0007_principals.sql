-- All keyless callers own their payments together; budgets go on counting them by address. Identifiers belong to one
-- owner, payTo and payer.
alter table kernel_settlements add column budget_principal text;
update kernel_settlements set budget_principal = principal;
-- It may be null: a replica of the version before, which may still run, names the budget's principal as the owner.

drop index kernel_settlements_identifier;
-- Of one identifier that callers at several addresses used for one payTo and payer, the first stays.
update kernel_settlements set identifier = null where id in (
  select id from (
    select id, row_number() over (partition by pay_to, payer, identifier order by recorded_at, id) as place
    from kernel_settlements where principal like 'ip:%' and identifier is not null) placed
  where place > 1);
update kernel_settlements set principal = 'anonymous' where principal like 'ip:%';
update kernel_facts set principal = 'anonymous' where principal like 'ip:%';
create unique index kernel_settlements_identifier on kernel_settlements (principal, pay_to, payer, identifier)
  where identifier is not null;
