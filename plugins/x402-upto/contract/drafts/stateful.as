// The stateful draft: the payer signs token, recipient, facilitator, maximum, nonce and window in seconds, and by the
// allowance below the call its last ledger; the facilitator signs the whole call. The nonce is spent until that ledger.
/** `actual_amount`, `facilitator`, `max_amount`, `nonce`: ascending, as the keys of a map must be. */
const fieldNames: usize = memory.data<u8>([
  0x61, 0x63, 0x74, 0x75, 0x61, 0x6c, 0x5f, 0x61, 0x6d, 0x6f, 0x75, 0x6e, 0x74, 0x66, 0x61, 0x63, 0x69, 0x6c, 0x69,
  0x74, 0x61, 0x74, 0x6f, 0x72, 0x6d, 0x61, 0x78, 0x5f, 0x61, 0x6d, 0x6f, 0x75, 0x6e, 0x74, 0x6e, 0x6f, 0x6e, 0x63,
  0x65
])
/** Where each name of the map begins and how long it is. */
const fields: usize = memory.data(32, 8)

function field(at: u32, from: u32, length: u32): void {
  store<u32>(fields + ((at as usize) << 3), (fieldNames as u32) + from)
  store<u32>(fields + ((at as usize) << 3) + 4, length)
}

export function settle_upto(
  token: Val,
  from: Val,
  to: Val,
  facilitator: Val,
  maxAmount: Val,
  actualAmount: Val,
  nonce: Val,
  validAfter: Val,
  deadline: Val,
  allowanceExpirationLedger: Val
): Val {
  demand(isAddress(token) && isAddress(from) && isAddress(to) && isAddress(facilitator), INVALID_ARGUMENT)
  demandId(nonce)
  demandAmounts(maxAmount, actualAmount)
  const contract = currentContract()
  demandParties(from, to, token, contract)

  put(0, token)
  put(1, to)
  put(2, facilitator)
  put(3, maxAmount)
  put(4, nonce)
  put(5, validAfter)
  put(6, deadline)
  requireAuthForArgs(from, vec(7))
  requireAuth(facilitator)

  const now = secondsOf(ledgerTimestamp())
  demand(secondsOf(validAfter) <= now, NOT_YET_VALID)
  demand(now <= secondsOf(deadline), EXPIRED)
  spend(from, nonce, VOID, demandLedger(allowanceExpirationLedger))
  pay(token, contract, from, to, maxAmount, actualAmount, allowanceExpirationLedger)

  put(0, symbolFromMemory(u32Val(uptoSettled as u32), u32Val(12)))
  put(1, token)
  put(2, from)
  put(3, to)
  const topics = vec(4)
  field(0, 0, 13)
  field(1, 13, 11)
  field(2, 24, 10)
  field(3, 34, 5)
  put(0, actualAmount)
  put(1, facilitator)
  put(2, maxAmount)
  put(3, nonce)
  emit(topics, mapFromMemory(u32Val(fields as u32), u32Val(words as u32), u32Val(4)))
  return VOID
}

export function is_nonce_used(from: Val, nonce: Val): Val {
  return hasData(nonceKey(from, nonce), TEMPORARY)
}
