// The spending account of an agent: a contract account that its owner creates for one key of the agent. That key moves
// one asset by single transfers, only to listed recipients if a list is given, at most `cap` atomic units in a day of
// the ledger's clock, and only before `expires_at`. It authorizes nothing else: no allowance, no call with calls below
// it, no deployment and no function of this contract. The owner changes or revokes the policy and takes funds back; it
// signs as itself and needs no signature of the agent. No upgrade. The contract extends no entry's life: its owner pays
// for that. AssemblyScript, compiled after host.as to the wasm next to it; it has not been audited.

// The contract's errors. They begin at 301 because a token's own errors come through.
const INVALID_ARGUMENT: u32 = 301
const NOT_ALLOWED: u32 = 302
const EXPIRED: u32 = 303
const OTHER_CALL: u32 = 304
const OTHER_RECIPIENT: u32 = 305
const ABOVE_CAP: u32 = 306
const AMOUNT_TOO_LARGE: u32 = 307

const VOID: Val = 2
const INSTANCE: u64 = 2
const SECONDS_PER_DAY: u64 = 86_400
/** The instance is read and written by each payment, so the list is short. */
const RECIPIENTS_MAX: u32 = 32

/** The keys of the instance's storage, and names in the host's values. Symbols of up to nine characters are numbers. */
const OWNER: Val = 0x34f33ab70e
const POLICY: Val = 0xd74c6ea3e0e
const SPENT: Val = 0x38d6acf90e
const CONTRACT_CALL: Val = 0x3b4cf9de6a390e
const CONTRACT: Val = 0xa34cf9de6a390e
const FUNCTION: Val = 0x2bcc1ce6caa0e
const ARGS: Val = 0x9b7b380e
const SIGNATURE: Val = 0x38bacce6e7adea0e

// @ts-ignore: decorator
@external("m", "1")
declare function mapGet(map: Val, key: Val): Val
// @ts-ignore: decorator
@external("v", "d")
declare function firstIndexOf(vec: Val, item: Val): Val
// @ts-ignore: decorator
@external("l", "2")
declare function deleteData(key: Val, storage: u64): Val

/** The policy, taken apart in the order of `allow`'s arguments. */
const policy: usize = memory.data(40, 8)
const AGENT: u32 = 0
const ASSET: u32 = 1
const CAP: u32 = 2
const EXPIRES_AT: u32 = 3
const RECIPIENTS: u32 = 4

const parts: usize = memory.data(24, 8)

function isSame(a: Val, b: Val): bool {
  return isAddress(a) && compareObjects(a, b) == 0
}

function keepPolicy(agent: Val, asset: Val, cap: Val, expiresAt: Val, recipients: Val): void {
  demand(isBytes(agent, 32) && isAddress(asset) && isI128(cap) && isU64(expiresAt), INVALID_ARGUMENT)
  demand(tagOf(recipients) == VEC_TAG && vecLength(recipients) <= u32Val(RECIPIENTS_MAX), INVALID_ARGUMENT)
  demand(isLess(ZERO, cap), INVALID_ARGUMENT)
  put(AGENT, agent)
  put(ASSET, asset)
  put(CAP, cap)
  put(EXPIRES_AT, expiresAt)
  put(RECIPIENTS, recipients)
  putData(POLICY, vec(5), INSTANCE)
}

function requireOwner(): void {
  requireAuth(getData(OWNER, INSTANCE))
}

/** Adds to the day's total, which must stay within the cap. A day ends at midnight UTC by the ledger's close time. */
function count(amount: Val): void {
  const day = u64Val(u64Of(closeTime()) / SECONDS_PER_DAY)
  let spent = ZERO
  if (hasData(SPENT, INSTANCE) == 1) {
    unpack(getData(SPENT, INSTANCE), parts, 2, INVALID_ARGUMENT)
    if (u64Of(wordAt(parts, 0)) == u64Of(day)) spent = wordAt(parts, 1)
  }
  const total = sum(spent, amount)
  demand(!isLess(wordAt(policy, CAP), total), ABOVE_CAP)
  put(0, day)
  put(1, total)
  putData(SPENT, vec(2), INSTANCE)
}

/** Creates the account with its first policy. */
export function __constructor(
  owner: Val,
  agent: Val,
  asset: Val,
  cap: Val,
  expiresAt: Val,
  recipients: Val
): Val {
  demand(isAddress(owner), INVALID_ARGUMENT)
  putData(OWNER, owner, INSTANCE)
  keepPolicy(agent, asset, cap, expiresAt, recipients)
  return VOID
}

/** Replaces the policy; the day's total remains. */
export function allow(agent: Val, asset: Val, cap: Val, expiresAt: Val, recipients: Val): Val {
  requireOwner()
  keepPolicy(agent, asset, cap, expiresAt, recipients)
  return VOID
}

/** Ends the policy: from now on the agent's key moves nothing. */
export function revoke(): Val {
  requireOwner()
  if (hasData(POLICY, INSTANCE) == 1) deleteData(POLICY, INSTANCE)
  return VOID
}

/** Moves any token of the account, also without a policy. */
export function withdraw(token: Val, to: Val, amount: Val): Val {
  requireOwner()
  put(0, currentContract())
  put(1, to)
  put(2, amount)
  return call(token, TRANSFER, vec(3))
}

/** The owner, the policy or void, and the latest day with a payment and its total, or void. */
export function state(): Val {
  const held = hasData(POLICY, INSTANCE) == 1 ? getData(POLICY, INSTANCE) : VOID
  const spent = hasData(SPENT, INSTANCE) == 1 ? getData(SPENT, INSTANCE) : VOID
  put(0, getData(OWNER, INSTANCE))
  put(1, held)
  put(2, spent)
  return vec(3)
}

/** The host calls this once for each authorization, whose nonce it spends itself. */
export function __check_auth(payload: Val, signatures: Val, contexts: Val): Val {
  demand(hasData(POLICY, INSTANCE) == 1, NOT_ALLOWED)
  unpack(getData(POLICY, INSTANCE), policy, 5, INVALID_ARGUMENT)
  demand(u64Of(closeTime()) < u64Of(wordAt(policy, EXPIRES_AT)), EXPIRED)
  unpack(signatures, parts, 1, NOT_ALLOWED)
  verifyEd25519(wordAt(policy, AGENT), payload, mapGet(wordAt(parts, 0), SIGNATURE))

  // Calls below a call are contexts too.
  unpack(contexts, parts, 1, OTHER_CALL)
  unpack(wordAt(parts, 0), parts, 2, OTHER_CALL)
  demand(wordAt(parts, 0) == CONTRACT_CALL, OTHER_CALL)
  const called = wordAt(parts, 1)
  demand(isSame(mapGet(called, CONTRACT), wordAt(policy, ASSET)), OTHER_CALL)
  demand(mapGet(called, FUNCTION) == TRANSFER, OTHER_CALL)
  unpack(mapGet(called, ARGS), parts, 3, OTHER_CALL)
  const to = wordAt(parts, 1)
  const amount = wordAt(parts, 2)
  demand(isSame(wordAt(parts, 0), currentContract()) && isAddress(to) && isI128(amount), OTHER_CALL)
  demand(isLess(ZERO, amount), OTHER_CALL)

  const recipients = wordAt(policy, RECIPIENTS)
  demand(vecLength(recipients) == u32Val(0) || firstIndexOf(recipients, to) != VOID, OTHER_RECIPIENT)
  count(amount)
  return VOID
}
