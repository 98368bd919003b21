// The contract of the `batch-settlement` scheme: one instance, many channels, no owner and no upgrade. A channel holds
// the deposits for its config. Vouchers of the payer's authorizer and totals allowed by the receiver's authorizer move
// them to the receiver: at most the amount that arrived, never back and never twice. Unclaimed funds return to the
// payer: within a ledger if the receiver's authorizer agrees, or after the channel's delay by the payer's call only.
// Every failure reverts everything. Entries are never removed: without its totals a spent voucher would be valid again.
// This file is AssemblyScript, compiled after host.as, channel.as and claims.as to the wasm next to it; it has not been
// audited.

/**
 * Opens the channel or tops it up, by the part of `amount` that arrives; returns that part. `from` authorizes the call
 * and the token's transfer below it, and need not be the payer. A deposit does not change a started withdrawal.
 */
export function deposit(from: Val, config: Val, amount: Val): Val {
  begin()
  demand(isAddress(from), INVALID_ARGUMENT)
  demandPositive(amount)
  readConfig(config)
  demandValidConfig()
  requireAuth(from)
  if (hasData(channelId, PERSISTENT) == 1) readChannel()
  const token = its(TOKEN)
  const before = balanceOf(token)
  transfer(token, from, contract, amount)
  const received = difference(balanceOf(token), before)
  demand(isLess(ZERO, received) && !isLess(amount, received), MOVED_OTHERWISE)
  balance = sum(balance, received)
  keepChannel()
  let data = mapPut(mapNew(), symbol("amount"), received)
  data = mapPut(data, symbol("balance"), balance)
  data = mapPut(data, symbol("config"), config)
  emitOfChannel("batch_deposited", mapPut(data, symbol("from"), from))
  return received
}

/**
 * Raises the claimed totals of channels under one receiver's authorizer, whose signature is the only authorization.
 * Skips an entry whose total is already claimed; any other invalid entry fails the whole call. Returns how many
 * channels advanced.
 */
export function claim(claims: Val, expiresAt: Val, signature: Val): Val {
  begin()
  demandUnexpired(expiresAt)
  demand(tagOf(claims) == VEC_TAG, INVALID_ARGUMENT)
  const count = (vecLength(claims) >> 32) as u32
  demand(count > 0, NO_CLAIMS)
  return u32Val(applyClaims(claims, count, expiresAt, signature))
}

/** Pays the receiver all that was claimed for it of a token and not yet paid; returns that. */
export function settle(receiver: Val, token: Val): Val {
  begin()
  demand(isAddress(receiver) && isAddress(token), INVALID_ARGUMENT)
  const key = receiverKey(receiver, token)
  readReceiver(key)
  const total = wordAt(words, 0)
  const amount = difference(total, wordAt(words, 1))
  demand(isLess(ZERO, amount), NOTHING_TO_SETTLE)
  put(1, total)
  keep(key, vec(2))
  pay(token, receiver, amount)
  put(0, symbol("batch_settled"))
  put(1, receiver)
  put(2, token)
  emit(vec(3), amount)
  return amount
}

/** The state after a payment back to the payer, as an event's data. */
function returned(amount: Val): Val {
  return mapPut(mapPut(mapNew(), symbol("amount"), amount), symbol("balance"), balance)
}

/**
 * Makes the claims, if there are any, and then pays the payer `amount`, or the rest if that is less; returns the paid
 * amount. The signature of the receiver's authorizer is the only authorization. It is valid once, for the channel's
 * nonce, and not after `expiresAt`, which the claims' signature covers as well.
 */
export function refund(
  config: Val,
  amount: Val,
  nonce: Val,
  expiresAt: Val,
  signature: Val,
  claims: Val,
  claimSignature: Val
): Val {
  begin()
  demandPositive(amount)
  demandUnexpired(expiresAt)
  demand(isU64(nonce) && tagOf(claims) == VEC_TAG, INVALID_ARGUMENT)
  const count = (vecLength(claims) >> 32) as u32
  if (count > 0) applyClaims(claims, count, expiresAt, claimSignature)
  readConfig(config)
  readChannel()
  demand(u64Of(nonce) == u64Of(refundNonce), REFUND_NONCE_MISMATCH)
  putDomain("x402_batch_refund")
  put(3, channelId)
  put(4, amount)
  put(5, nonce)
  put(6, expiresAt)
  verifyEd25519(its(RECEIVER_AUTHORIZER), digestOf(7), signature)
  const left = difference(balance, claimed)
  demand(isLess(ZERO, left), NOTHING_LEFT)
  const paid = isLess(left, amount) ? left : amount
  balance = difference(balance, paid)
  refundNonce = u64Val(u64Of(refundNonce) + 1)
  // A withdrawal with nothing left to withdraw ends here; a smaller refund must not stop it.
  if (isEqual(balance, claimed)) withdrawRequestedAt = NO_TIME
  keepChannel()
  pay(its(TOKEN), its(PAYER), paid)
  emitOfChannel("batch_refunded", mapPut(returned(paid), symbol("nonce"), nonce))
  return paid
}

/** Starts the channel's delay by the ledger's close time; returns the first close time at which it may end. */
export function withdraw_start(config: Val): Val {
  begin()
  readConfig(config)
  readChannel()
  requireAuth(its(PAYER))
  demand(u64Of(withdrawRequestedAt) == 0, WITHDRAWAL_ALREADY_STARTED)
  demand(isLess(claimed, balance), NOTHING_LEFT)
  withdrawRequestedAt = closeTime()
  keepChannel()
  const endsAt = u64Val(u64Of(withdrawRequestedAt) + u64Of(its(WITHDRAW_DELAY)))
  emitOfChannel("batch_withdraw_started", endsAt)
  return endsAt
}

/**
 * Pays the unclaimed balance to the payer after the delay; returns it, zero if all of it was claimed during the delay.
 * The nonce increases, so that refunds signed before are not valid for later deposits.
 */
export function withdraw_end(config: Val): Val {
  begin()
  readConfig(config)
  readChannel()
  requireAuth(its(PAYER))
  const requestedAt = u64Of(withdrawRequestedAt)
  demand(requestedAt != 0, WITHDRAWAL_NOT_STARTED)
  demand(u64Of(closeTime()) >= requestedAt + u64Of(its(WITHDRAW_DELAY)), WITHDRAWAL_TOO_EARLY)
  const left = difference(balance, claimed)
  balance = claimed
  withdrawRequestedAt = NO_TIME
  refundNonce = u64Val(u64Of(refundNonce) + 1)
  keepChannel()
  if (isLess(ZERO, left)) pay(its(TOKEN), its(PAYER), left)
  emitOfChannel("batch_withdraw_ended", returned(left))
  return left
}

/** The channel's entry: balance, claimed, when a withdrawal was started or 0, and the next refund's nonce. */
export function state(id: Val): Val {
  demand(isBytes(id, 32) && hasData(id, PERSISTENT) == 1, CHANNEL_NOT_FOUND)
  return getData(id, PERSISTENT)
}

/** A receiver's total claimed amount of a token, and the paid part of it. */
export function receiver_state(receiver: Val, token: Val): Val {
  readReceiver(receiverKey(receiver, token))
  return vec(2)
}

/** The id of a config's channel, whether it is open or not. */
export function channel_id(config: Val): Val {
  begin()
  readConfig(config)
  return channelId
}
