// The total order of everything that happens on the ledger in one number: ledger, transaction and operation packed into
// 64 bits. Cursors and event ids are made of it. Transaction 0 sorts before all transactions, the greatest after all.
export const TRANSACTION_MAX = (1 << 20) - 1

export const toid = (ledger: number, transaction: number, operation: number): bigint =>
  (BigInt(ledger) << 32n) | (BigInt(transaction) << 12n) | BigInt(operation)

export const ledgerOf = (id: bigint): number => Number(id >> 32n)
export const transactionOf = (id: bigint): number => Number((id >> 12n) & 0xfffffn)
