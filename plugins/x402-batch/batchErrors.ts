// The errors of the contract by number. They begin at 201, above those of tokens (1 to 15 for the asset contract) and
// of the `upto` contract. In a claim the number also names the entry: `(entry + 1) × 10 000 + error`, entries from
// zero.

/** Name by number, as in the contract's interface. */
export const batchErrors = {
  InvalidArgument: 201,
  InvalidAmount: 202,
  WithdrawDelayOutOfRange: 203,
  SameParty: 204,
  MovedOtherwise: 205,
  AmountTooLarge: 206,
  ChannelNotFound: 207,
  NoClaims: 208,
  TooManyClaims: 209,
  AuthorizerMismatch: 210,
  TotalAboveMaximum: 211,
  TotalAboveBalance: 212,
  NothingToSettle: 213,
  RefundNonceMismatch: 214,
  NothingLeft: 215,
  WithdrawalAlreadyStarted: 216,
  WithdrawalNotStarted: 217,
  WithdrawalTooEarly: 218,
  SignatureExpired: 219
} as const

export type BatchErrorName = keyof typeof batchErrors

/** The factor between an entry's number and the error's own. */
const errorEntryFactor = 10_000

const names = new Map<number, BatchErrorName>(
  Object.entries(batchErrors).map(([name, code]) => [code, name as BatchErrorName])
)

/** An error of the batch contract. `entry`: index of the claim's entry, from zero. */
interface BatchError {
  readonly name: BatchErrorName
  readonly entry: number | undefined
}

/** Reads a contract error's number; undefined for one of another contract, such as the token's. */
export const batchErrorOf = (code: number): BatchError | undefined => {
  const name = names.get(code % errorEntryFactor)
  const entry = Math.floor(code / errorEntryFactor) - 1
  return name === undefined ? undefined : { name, entry: entry < 0 ? undefined : entry }
}
