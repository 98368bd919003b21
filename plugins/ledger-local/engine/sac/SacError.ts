// The asset contract's published error numbers, as they appear in `Error(Contract, #n)`.
export const SacError = {
  operationNotSupported: 2,
  alreadyInitialized: 3,
  authentication: 5,
  accountMissing: 6,
  negativeAmount: 8,
  allowance: 9,
  balance: 10,
  balanceDeauthorized: 11,
  overflow: 12,
  trustLineMissing: 13,
  insufficientReserve: 14,
  tooManySubentries: 15
} as const
