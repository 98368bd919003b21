// The draft of seven arguments: the payer signs token, both parties, maximum, last ledger and nonce; the nonce is spent
// until that ledger. No other party signs, so any holder of the authorization may settle any amount up to the maximum.
export function settle(
  token: Val,
  from: Val,
  to: Val,
  maxAmount: Val,
  expirationLedger: Val,
  nonce: Val,
  actualAmount: Val
): Val {
  demand(isAddress(token) && isAddress(from) && isAddress(to), INVALID_ARGUMENT)
  demandId(nonce)
  demandAmounts(maxAmount, actualAmount)
  const ledgersLeft = demandLedger(expirationLedger)
  const contract = currentContract()
  demandParties(from, to, token, contract)

  put(0, token)
  put(1, from)
  put(2, to)
  put(3, maxAmount)
  put(4, expirationLedger)
  put(5, nonce)
  requireAuthForArgs(from, vec(6))

  spend(from, nonce, TRUE, ledgersLeft)
  pay(token, contract, from, to, maxAmount, actualAmount, expirationLedger)

  put(0, symbolFromMemory(u32Val(uptoSettled as u32), u32Val(12)))
  const topics = vec(1)
  put(0, from)
  put(1, to)
  put(2, maxAmount)
  put(3, actualAmount)
  put(4, nonce)
  emit(topics, vec(5))
  return VOID
}

export function is_used(from: Val, nonce: Val): Val {
  return hasData(nonceKey(from, nonce), TEMPORARY)
}
