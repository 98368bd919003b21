-- What stands unresolved is listed for operators without looking through the whole history.
create index kernel_settlements_unresolved on kernel_settlements (recorded_at) where state = 'unresolved';
