// The stateless draft. It stores no entry, so only the nonce of the payer's authorization marks a payment as spent. The
// payer signs recipient, asset, maximum, window, last ledger, salt and whether the allowance ends with the call. No
// other party signs, so any holder of the authorization may settle any amount up to the maximum.
export function settle(
  from: Val,
  payTo: Val,
  asset: Val,
  maxAmount: Val,
  validAfter: Val,
  deadline: Val,
  expirationLedger: Val,
  salt: Val,
  autoRevoke: Val,
  amount: Val
): Val {
  demand(isAddress(from) && isAddress(payTo) && isAddress(asset), INVALID_ARGUMENT)
  demandId(salt)
  demand(autoRevoke == FALSE || autoRevoke == TRUE, INVALID_ARGUMENT)
  demandAmounts(maxAmount, amount)
  const now = secondsOf(ledgerTimestamp())
  demand(secondsOf(validAfter) <= now, NOT_YET_VALID)
  // The first second that is too late.
  demand(now < secondsOf(deadline), EXPIRED)
  demandLedger(expirationLedger)
  const contract = currentContract()
  demandParties(from, payTo, asset, contract)

  put(0, payTo)
  put(1, asset)
  put(2, maxAmount)
  put(3, validAfter)
  put(4, deadline)
  put(5, expirationLedger)
  put(6, salt)
  put(7, autoRevoke)
  requireAuthForArgs(from, vec(8))

  pay(asset, contract, from, payTo, maxAmount, amount, expirationLedger)
  if (autoRevoke == TRUE) approve(asset, from, contract, ZERO, u32Val(0))
  return amount
}
