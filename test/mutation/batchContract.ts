// Removes each guard of the batch contract, one at a time; its tests build it from the changed source.
import type { Mutation } from "./Mutation.ts"

const folder = "test/plugins/x402-batch/contract"
const vitest = ["node_modules/vitest/vitest.mjs", "run", "--config", "test/vitest.config.ts"]
/** Not the test that compares the wasm with its source: it would catch anything. */
const catcher = [...vitest, `${folder}/contract.test.ts`, `${folder}/tokens.test.ts`, "-t", "^(?!the module)"]

const inPart =
  (part: string) =>
  (name: string, from: string, to: string): Mutation => ({
    name,
    changes: [{ file: `plugins/x402-batch/contract/${part}.as`, from, to }],
    catcher
  })

const host = inPart("host")
const channel = inPart("channel")
const claims = inPart("claims")
const batch = inPart("batch")

const values: ReadonlyArray<Mutation> = [
  host("a sum may have no amount", "demand(high >= 0, AMOUNT_TOO_LARGE)", ""),
  host("a sum loses its carry", "+ (low < lowOf(a) ? 1 : 0) demand", "+ 0\n  demand"),
  host("a difference loses its borrow", "- (lowOf(a) < lowOf(b) ? 1 : 0), low)", ", low)"),
  host(
    "the upper half is not compared",
    "aHigh < bHigh || (aHigh == bHigh && lowOf(a) < lowOf(b))",
    "lowOf(a) < lowOf(b)"
  ),
  host("an amount of 56 bits loses its sign", "(((low as i64) << 8) >> 8) == (low as i64) && high", "high"),
  host(
    "a large number loses its upper byte",
    "value >> 56 == 0 ? (value << 8) | U64_SMALL_TAG : u64Object(value)",
    "(value << 8) | U64_SMALL_TAG"
  ),
  host("a vector of another length is taken apart", "&& vecLength(value) == u32Val(count), error)", ", error)"),
  host(
    "bytes have any length",
    "tagOf(value) == BYTES_TAG && bytesLength(value) == u32Val(length)",
    "tagOf(value) == BYTES_TAG"
  ),
  host("an error does not name its entry", "(errorBase + error) as u64", "error as u64")
]

const channels: ReadonlyArray<Mutation> = [
  channel("an id has no network", "put(1, network)", "put(1, contract)"),
  channel("an id has no contract", "put(2, contract)", "put(2, network)"),
  channel(
    "addresses are not checked",
    "demand(isAddress(its(PAYER)) && isAddress(its(RECEIVER)) && isAddress(its(TOKEN)), INVALID_ARGUMENT)",
    ""
  ),
  channel(
    "keys are not checked",
    "demand(isBytes(its(PAYER_AUTHORIZER), 32) && isBytes(its(RECEIVER_AUTHORIZER), 32), INVALID_ARGUMENT)",
    ""
  ),
  channel(
    "salt and delay are not checked",
    "demand(isBytes(its(SALT), 32) && isU64(its(WITHDRAW_DELAY)), INVALID_ARGUMENT)",
    ""
  ),
  channel("a delay may be shorter", "delay >= DELAY_MIN && delay", "delay"),
  channel("a delay may be longer", "&& delay <= DELAY_MAX", ""),
  channel("the least delay is refused", "delay >= DELAY_MIN", "delay > DELAY_MIN"),
  channel("the most delay is refused", "delay <= DELAY_MAX", "delay < DELAY_MAX"),
  channel("a payer is the receiver", "demandDistinct(its(PAYER), its(RECEIVER))", ""),
  channel("the contract is the payer", "demandDistinct(its(PAYER), contract)", ""),
  channel("the contract is the receiver", "demandDistinct(its(RECEIVER), contract)", ""),
  channel("a channel that is not there is read", "demand(hasData(channelId, PERSISTENT) == 1, CHANNEL_NOT_FOUND)", ""),
  channel("an entry's life is not extended", "extendData(key, PERSISTENT, u32Val(LIFE_MIN), u32Val(LIFE))", ""),
  channel("an amount may be zero or less", "demand(isLess(ZERO, amount), INVALID_AMOUNT)", ""),
  channel("an amount has another type", "demand(isI128(amount), INVALID_ARGUMENT)", ""),
  channel(
    "what leaves the contract is not compared",
    "demand(isEqual(difference(before, balanceOf(token)), amount), MOVED_OTHERWISE)",
    ""
  )
]

const ofClaims: ReadonlyArray<Mutation> = [
  claims("a total is above the voucher", "demand(!isLess(maximum, total), TOTAL_ABOVE_MAXIMUM)", ""),
  claims("a total is above the balance", "demand(!isLess(balance, total), TOTAL_ABOVE_BALANCE)", ""),
  claims("a total goes back", "if (!isLess(claimed, total)) return false", "if (isEqual(claimed, total)) return false"),
  claims("a claim counts twice", "addDue(difference(total, claimed))", "addDue(total)"),
  claims("no voucher is needed", "demandVoucher(maximum, wordAt(entry, 2))", ""),
  claims(
    "a voucher has no channel",
    "put(3, channelId) put(4, maximum) verifyEd25519",
    "put(3, contract)\n  put(4, maximum)\n  verifyEd25519"
  ),
  claims("a voucher's maximum is not signed", "put(4, maximum) verifyEd25519", "put(4, ZERO)\n  verifyEd25519"),
  claims(
    "another authorizer claims too",
    "demand(compareObjects(its(RECEIVER_AUTHORIZER), authorizer) == 0, AUTHORIZER_MISMATCH)",
    ""
  ),
  claims("no authorizer is needed", "verifyEd25519(authorizer, digestOf(5), signature)", "digestOf(5)"),
  claims(
    "the authorizer signs no maximum",
    "put(1, wordAt(entry, 1)) put(2, wordAt(entry, 3))",
    "put(1, ZERO)\n  put(2, wordAt(entry, 3))"
  ),
  claims("the authorizer signs no total", "put(2, wordAt(entry, 3)) store", "put(2, ZERO)\n  store"),
  claims("a claim's end is not signed", "put(4, expiresAt)", "put(4, ZERO)"),
  claims("a claim takes any number of entries", "demand(count <= CLAIMS_MAX, TOO_MANY_CLAIMS)", ""),
  claims("amounts of an entry are not checked", "demand(isI128(maximum) && isI128(total), INVALID_ARGUMENT)", ""),
  claims("receivers are credited together", "compareObjects(dueReceiver, its(RECEIVER)) == 0 &&", ""),
  claims("the last receiver is not credited", "errorBase = 0 creditDue()", "errorBase = 0"),
  claims("a receiver's earlier claims are lost", "put(0, sum(wordAt(words, 0), due))", "put(0, due)")
]

const functions: ReadonlyArray<Mutation> = [
  batch("a deposit is not authorized by its payer", "requireAuth(from) if", "if"),
  batch("a config is not checked", "demandValidConfig() requireAuth", "requireAuth"),
  batch("a deposit forgets the balance", "if (hasData(channelId, PERSISTENT) == 1) readChannel()", ""),
  batch("a deposit is credited in full", "balance = sum(balance, received)", "balance = sum(balance, amount)"),
  batch("a deposit of nothing is credited", "demand(isLess(ZERO, received) && !isLess", "demand(!isLess"),
  batch("more arrives than was sent", "&& !isLess(amount, received), MOVED", ", MOVED"),
  batch("a sender of another type", "demand(isAddress(from), INVALID_ARGUMENT)", ""),
  batch("a claim of nothing", "demand(count > 0, NO_CLAIMS)", ""),
  batch("claims of another type", "demand(tagOf(claims) == VEC_TAG, INVALID_ARGUMENT)", ""),
  batch("a settlement is paid again", "put(1, total) keep(key, vec(2))", ""),
  batch("nothing is settled", "demand(isLess(ZERO, amount), NOTHING_TO_SETTLE)", ""),
  batch("a refund has any nonce", "demand(u64Of(nonce) == u64Of(refundNonce), REFUND_NONCE_MISMATCH)", ""),
  batch("a refund's nonce stays", "refundNonce = u64Val(u64Of(refundNonce) + 1) // A withdrawal", "// A withdrawal"),
  batch("a refund is not signed", "verifyEd25519(its(RECEIVER_AUTHORIZER), digestOf(7), signature)", ""),
  batch("a signed refund never ends", "demandPositive(amount) demandUnexpired(expiresAt)", "demandPositive(amount)"),
  batch("a signed claim never ends", "begin() demandUnexpired(expiresAt)", "begin()"),
  batch("a refund's end is not signed", "put(6, expiresAt)", "put(6, nonce)"),
  batch(
    "a refund's signature has no channel",
    "put(3, channelId) put(4, amount)",
    "put(3, contract)\n  put(4, amount)"
  ),
  batch("a refund's signature has no amount", "put(4, amount) put(5, nonce)", "put(4, ZERO)\n  put(5, nonce)"),
  batch("a refund's signature has no nonce", "put(5, nonce) put(6", "put(5, ZERO)\n  put(6"),
  batch("a refund of nothing", "demand(isLess(ZERO, left), NOTHING_LEFT)", ""),
  batch("a refund takes what is claimed", "const paid = isLess(left, amount) ? left : amount", "const paid = amount"),
  batch(
    "a small refund stops a withdrawal",
    "if (isEqual(balance, claimed)) withdrawRequestedAt",
    "withdrawRequestedAt"
  ),
  batch("a whole refund leaves a withdrawal", "if (isEqual(balance, claimed)) withdrawRequestedAt = NO_TIME", ""),
  batch("a withdrawal is started by others", "requireAuth(its(PAYER)) demand", "demand"),
  batch("a withdrawal is started again", "demand(u64Of(withdrawRequestedAt) == 0, WITHDRAWAL_ALREADY_STARTED)", ""),
  batch("a withdrawal of nothing is started", "demand(isLess(claimed, balance), NOTHING_LEFT)", ""),
  batch("a withdrawal is ended by others", "requireAuth(its(PAYER)) const requestedAt", "const requestedAt"),
  batch("a withdrawal ends without a start", "demand(requestedAt != 0, WITHDRAWAL_NOT_STARTED)", ""),
  batch(
    "a withdrawal ends too early",
    "demand(u64Of(closeTime()) >= requestedAt + u64Of(its(WITHDRAW_DELAY)), WITHDRAWAL_TOO_EARLY)",
    ""
  ),
  batch(
    "a withdrawal ends a second late",
    ">= requestedAt + u64Of(its(WITHDRAW_DELAY))",
    "> requestedAt + u64Of(its(WITHDRAW_DELAY))"
  ),
  batch("a withdrawal is paid again", "balance = claimed withdrawRequestedAt", "withdrawRequestedAt"),
  batch(
    "a withdrawal leaves old refunds",
    "refundNonce = u64Val(u64Of(refundNonce) + 1) keepChannel() if",
    "keepChannel() if"
  ),
  batch("a withdrawal of nothing pays", "if (isLess(ZERO, left)) pay(", "pay("),
  batch("the state of any id", "demand(isBytes(id, 32) && hasData(id, PERSISTENT) == 1, CHANNEL_NOT_FOUND)", "")
]

export const mutations: ReadonlyArray<Mutation> = [...values, ...channels, ...ofClaims, ...functions]
