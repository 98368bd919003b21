-- Of a leaf whose content an operator has erased, as an act in kernel_operator_acts records: its transaction, and when.
-- The entry stays in the log's tree; salt, record, owners and receipt are gone.
alter table receipts_leaves add column erased_transaction bytea;
alter table receipts_leaves add column erased_at timestamptz;
create index receipts_leaves_erased on receipts_leaves (erased_transaction) where erased_transaction is not null;

-- The deposit that shows who may read the receipts of a channel's claims.
alter table receipts_channels add column transaction bytea;
update receipts_channels c set transaction = decode(coalesce(s.ended_by, s.inner_hash), 'hex')
from kernel_settlements s
where s.state = 'settled' and s.payer = c.payer and s.action->>'kind' = 'deposit'
  and s.action->>'channel' = encode(c.channel, 'hex');
