-- Deposits into payment channels have a budget of their own: the fees of a day's deposits, by the contract that takes them.
create index kernel_settlements_deposits on kernel_settlements (budget_day, pay_to)
  where scheme = 'batch-settlement';
