-- Replicas keep the documents in memory and follow this table by the transactions that wrote its rows. A trigger notes
-- the transaction, so that a replica of the version before is followed too. Existing rows are older than any reader.
alter table search_lexical_documents add column xid xid8 not null default '0';
create function search_lexical_note_transaction() returns trigger language plpgsql as $body$
begin
  new.xid := pg_current_xact_id();
  return new;
end
$body$;
create trigger search_lexical_documents_followed before insert or update on search_lexical_documents
  for each row execute function search_lexical_note_transaction();
create index search_lexical_documents_xid on search_lexical_documents (language, xid, id);
