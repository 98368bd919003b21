// A channel of the batch contract: its config, its entry, the digests that are signed, and payments out of the
// contract. Compiled after host.as, before claims.as and batch.as.

// The contract's errors. They begin at 201 because a token's own errors, 1 to 15 for the asset contract, come through.
const INVALID_ARGUMENT: u32 = 201
const INVALID_AMOUNT: u32 = 202
const WITHDRAW_DELAY_OUT_OF_RANGE: u32 = 203
const SAME_PARTY: u32 = 204
const MOVED_OTHERWISE: u32 = 205
const AMOUNT_TOO_LARGE: u32 = 206
const CHANNEL_NOT_FOUND: u32 = 207
const NO_CLAIMS: u32 = 208
const TOO_MANY_CLAIMS: u32 = 209
const AUTHORIZER_MISMATCH: u32 = 210
const TOTAL_ABOVE_MAXIMUM: u32 = 211
const TOTAL_ABOVE_BALANCE: u32 = 212
const NOTHING_TO_SETTLE: u32 = 213
const REFUND_NONCE_MISMATCH: u32 = 214
const NOTHING_LEFT: u32 = 215
const WITHDRAWAL_ALREADY_STARTED: u32 = 216
const WITHDRAWAL_NOT_STARTED: u32 = 217
const WITHDRAWAL_TOO_EARLY: u32 = 218
const SIGNATURE_EXPIRED: u32 = 219

/** Seconds from a withdrawal's start to its end. */
const DELAY_MIN: u64 = 900
const DELAY_MAX: u64 = 2_592_000
/** Minimum lifetime of an entry in ledgers after each call that changes it. The call extends the entry to it. */
const LIFE_MIN: u32 = 259_200
const LIFE: u32 = 518_400

/** The current config, taken apart in the order of the wire. */
const members: usize = memory.data(56, 8)
const PAYER: u32 = 0
const PAYER_AUTHORIZER: u32 = 1
const RECEIVER: u32 = 2
const RECEIVER_AUTHORIZER: u32 = 3
const TOKEN: u32 = 4
const WITHDRAW_DELAY: u32 = 5
const SALT: u32 = 6

let network: Val = 0
let contract: Val = 0

/** The current channel: its id and its entry, at first that of a new one. */
let channelId: Val = 0
let balance: Val = 11
let claimed: Val = 11
let withdrawRequestedAt: Val = 6
let refundNonce: Val = 6

function begin(): void {
  network = networkId()
  contract = currentContract()
}

function digestOf(count: u32): Val {
  return sha256(serialized(vec(count)))
}

/** The head of every digest; the caller appends its data from the fourth word on. */
function putDomain(domain: string): void {
  put(0, symbol(domain))
  put(1, network)
  put(2, contract)
}

/** Takes a config apart and names its channel. */
function readConfig(value: Val): void {
  unpack(value, members, 7, INVALID_ARGUMENT)
  putDomain("x402_batch_channel")
  put(3, value)
  channelId = digestOf(4)
}

// @ts-ignore: decorator
@inline
function its(member: u32): Val {
  return wordAt(members, member)
}

function demandDistinct(a: Val, b: Val): void {
  demand(compareObjects(a, b) != 0, SAME_PARTY)
}

/** Only a channel whose config passes here is ever opened, so that other functions need not check it again. */
function demandValidConfig(): void {
  demand(isAddress(its(PAYER)) && isAddress(its(RECEIVER)) && isAddress(its(TOKEN)), INVALID_ARGUMENT)
  demand(isBytes(its(PAYER_AUTHORIZER), 32) && isBytes(its(RECEIVER_AUTHORIZER), 32), INVALID_ARGUMENT)
  demand(isBytes(its(SALT), 32) && isU64(its(WITHDRAW_DELAY)), INVALID_ARGUMENT)
  const delay = u64Of(its(WITHDRAW_DELAY))
  demand(delay >= DELAY_MIN && delay <= DELAY_MAX, WITHDRAW_DELAY_OUT_OF_RANGE)
  demandDistinct(its(PAYER), its(RECEIVER))
  demandDistinct(its(PAYER), contract)
  demandDistinct(its(RECEIVER), contract)
}

function readChannel(): void {
  demand(hasData(channelId, PERSISTENT) == 1, CHANNEL_NOT_FOUND)
  vecToMemory(getData(channelId, PERSISTENT), u32Val(words as u32), u32Val(4))
  balance = wordAt(words, 0)
  claimed = wordAt(words, 1)
  withdrawRequestedAt = wordAt(words, 2)
  refundNonce = wordAt(words, 3)
}

function keep(key: Val, value: Val): void {
  putData(key, value, PERSISTENT)
  extendData(key, PERSISTENT, u32Val(LIFE_MIN), u32Val(LIFE))
}

function keepChannel(): void {
  put(0, balance)
  put(1, claimed)
  put(2, withdrawRequestedAt)
  put(3, refundNonce)
  keep(channelId, vec(4))
}

function demandPositive(amount: Val): void {
  demand(isI128(amount), INVALID_ARGUMENT)
  demand(isLess(ZERO, amount), INVALID_AMOUNT)
}

/** A signature of the receiver's authorizer counts up to the close time that it names, and never later. */
function demandUnexpired(expiresAt: Val): void {
  demand(isU64(expiresAt), INVALID_ARGUMENT)
  demand(u64Of(closeTime()) <= u64Of(expiresAt), SIGNATURE_EXPIRED)
}

function balanceOf(token: Val): Val {
  put(0, contract)
  const held = call(token, BALANCE, vec(1))
  demand(isI128(held), MOVED_OTHERWISE)
  return held
}

function transfer(token: Val, from: Val, to: Val, amount: Val): void {
  put(0, from)
  put(1, to)
  put(2, amount)
  call(token, TRANSFER, vec(3))
}

function isEqual(a: Val, b: Val): bool {
  return highOf(a) == highOf(b) && lowOf(a) == lowOf(b)
}

/** Pays out of the contract; its balance must fall by exactly that amount, regardless of the token's events. */
function pay(token: Val, to: Val, amount: Val): void {
  const before = balanceOf(token)
  transfer(token, contract, to, amount)
  demand(isEqual(difference(before, balanceOf(token)), amount), MOVED_OTHERWISE)
}

/** An event about the current channel and its payer. */
function emitOfChannel(name: string, data: Val): void {
  put(0, symbol(name))
  put(1, channelId)
  put(2, its(PAYER))
  emit(vec(3), data)
}
