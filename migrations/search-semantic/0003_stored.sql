-- How often vectors of a generation were stored, raised in the transaction that stores them: while it stays the same, so do its answers.
alter table search_semantic_generations add column stored bigint not null default 0;
