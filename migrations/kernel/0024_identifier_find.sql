-- An operator finds a settlement by its payment identifier alone; the unique index begins with the principal.
create index kernel_settlements_by_identifier on kernel_settlements (identifier) where identifier is not null;
