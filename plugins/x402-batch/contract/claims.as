// Claims: entries of vouchers and totals under one receiver's authorizer, and the amounts that they make due to
// receivers. Compiled after channel.as, before batch.as.

/** An error of a claim's entry is `(entry + 1) × ENTRY + error`. */
const ENTRY: u32 = 10_000
/** Entries of one claim at most: more than the network lets one transaction write. */
const CLAIMS_MAX: u32 = 256
/** A claim's entry, taken apart: config, maximum, signature, total. */
const entry: usize = memory.data(32, 8)
/** The authorizer's signed part of each entry, and the channels that a claim advances. */
const signedTotals: usize = memory.data(2048, 8)
const advanced: usize = memory.data(2048, 8)

/** A receiver's amount of a token in this claim so far. */
let dueReceiver: Val = 0
let dueToken: Val = 0
let due: Val = 0

function receiverKey(receiver: Val, token: Val): Val {
  put(0, receiver)
  put(1, token)
  return vec(2)
}

/** Reads the receiver's total claimed amount of the token and the paid part of it into the first two words. */
function readReceiver(key: Val): void {
  put(0, ZERO)
  put(1, ZERO)
  if (hasData(key, PERSISTENT) == 1)
    vecToMemory(getData(key, PERSISTENT), u32Val(words as u32), u32Val(2))
}

/** Credits a receiver with the amounts of adjacent entries in the claim. */
function creditDue(): void {
  if (dueReceiver == 0) return
  const key = receiverKey(dueReceiver, dueToken)
  readReceiver(key)
  put(0, sum(wordAt(words, 0), due))
  keep(key, vec(2))
}

function addDue(amount: Val): void {
  const isSame =
    dueReceiver != 0 &&
    compareObjects(dueReceiver, its(RECEIVER)) == 0 &&
    compareObjects(dueToken, its(TOKEN)) == 0
  if (!isSame) {
    creditDue()
    dueReceiver = its(RECEIVER)
    dueToken = its(TOKEN)
    due = ZERO
  }
  due = sum(due, amount)
}

/** The voucher counts when the payer's authorizer signed this maximum for this channel. */
function demandVoucher(maximum: Val, signature: Val): void {
  putDomain("x402_batch_voucher")
  put(3, channelId)
  put(4, maximum)
  verifyEd25519(its(PAYER_AUTHORIZER), digestOf(5), signature)
}

/** One entry of a claim; returns whether its channel advanced. */
function claimEntry(value: Val, authorizer: Val): bool {
  unpack(value, entry, 4, INVALID_ARGUMENT)
  const maximum = wordAt(entry, 1)
  const total = wordAt(entry, 3)
  demand(isI128(maximum) && isI128(total), INVALID_ARGUMENT)
  readConfig(wordAt(entry, 0))
  readChannel()
  demand(compareObjects(its(RECEIVER_AUTHORIZER), authorizer) == 0, AUTHORIZER_MISMATCH)
  if (!isLess(claimed, total)) return false
  demand(!isLess(maximum, total), TOTAL_ABOVE_MAXIMUM)
  demand(!isLess(balance, total), TOTAL_ABOVE_BALANCE)
  demandVoucher(maximum, wordAt(entry, 2))
  addDue(difference(total, claimed))
  claimed = total
  keepChannel()
  return true
}

/** The receiver's authorizer of the first entry; all entries must have the same one. */
function authorizerOf(first: Val): Val {
  unpack(first, entry, 4, INVALID_ARGUMENT)
  unpack(wordAt(entry, 0), members, 7, INVALID_ARGUMENT)
  const authorizer = its(RECEIVER_AUTHORIZER)
  demand(isBytes(authorizer, 32), INVALID_ARGUMENT)
  return authorizer
}

function applyClaims(claims: Val, count: u32, expiresAt: Val, signature: Val): u32 {
  demand(count <= CLAIMS_MAX, TOO_MANY_CLAIMS)
  errorBase = ENTRY
  const authorizer = authorizerOf(vecGet(claims, u32Val(0)))
  let moved: u32 = 0
  for (let i: u32 = 0; i < count; i++) {
    errorBase = (i + 1) * ENTRY
    const isAdvanced = claimEntry(vecGet(claims, u32Val(i)), authorizer)
    put(0, channelId)
    put(1, wordAt(entry, 1))
    put(2, wordAt(entry, 3))
    store<u64>(signedTotals + ((i as usize) << 3), vec(3))
    if (!isAdvanced) continue
    put(1, claimed)
    store<u64>(advanced + ((moved as usize) << 3), vec(2))
    moved++
  }
  errorBase = 0
  creditDue()
  const totals = vecFromMemory(u32Val(signedTotals as u32), u32Val(count))
  putDomain("x402_batch_claim")
  put(3, totals)
  put(4, expiresAt)
  verifyEd25519(authorizer, digestOf(5), signature)
  if (moved > 0) {
    put(0, symbol("batch_claimed"))
    put(1, authorizer)
    emit(vec(2), vecFromMemory(u32Val(advanced as u32), u32Val(moved)))
  }
  return moved
}
