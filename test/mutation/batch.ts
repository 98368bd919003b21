// Removes guards of the facilitator's part of `batch-settlement`, one at a time: of vouchers, claims, deposits, of the
// identity of a settlement without an authorization, and of how one is ended.
import type { Mutation } from "./Mutation.ts"

const vitest = (...args: ReadonlyArray<string>) => [
  "node_modules/vitest/vitest.mjs",
  "run",
  "--config",
  "test/vitest.config.ts",
  ...args
]
const folder = "test/plugins/x402-batch"
const pglite = { environment: { TOLLKEEPER_TEST_DATABASES: "pglite" } }

const inFile =
  (file: string, test: string) =>
  (name: string, from: string, to: string): Mutation => ({
    name,
    changes: [{ file, from, to }],
    catcher: vitest(test),
    ...pglite
  })

const plugin = "plugins/x402-batch"
const known = inFile(`${plugin}/Vouchers.ts`, `${folder}/Vouchers.test.ts`)
const terms = inFile(`${plugin}/checks.ts`, `${folder}/vouchers.daily.test.ts`)
const voucher = inFile(`${plugin}/verifyVoucher.ts`, `${folder}/vouchers.daily.test.ts`)
const state = inFile(`${plugin}/StateCache.ts`, `${folder}/StateCache.test.ts`)
const reads = inFile(`${plugin}/ChannelStates.ts`, `${folder}/states.daily.test.ts`)
const events = inFile("kernel/ledger/readContractEvents.ts", "test/kernel/ledger/readContractEvents.test.ts")
const claims = inFile(`${plugin}/payloadChecks.ts`, `${folder}/claims.daily.test.ts`)
const identity = inFile(`${plugin}/ledgerCalls.ts`, `${folder}/claims.daily.test.ts`)
const wire = inFile(`${plugin}/BatchWire.ts`, `${folder}/BatchWire.test.ts`)
const deposit = inFile(`${plugin}/checks.ts`, `${folder}/deposits.daily.test.ts`)
const depositPayload = inFile(`${plugin}/payloadChecks.ts`, `${folder}/deposits.daily.test.ts`)
const depositCall = inFile(`${plugin}/verifyCall.ts`, `${folder}/deposits.daily.test.ts`)
const after = inFile(`${plugin}/stateChecks.ts`, `${folder}/stateChecks.test.ts`)
const executed = inFile(`${plugin}/simulationChecks.ts`, `${folder}/claims.daily.test.ts`)
const calls = inFile(`${plugin}/verifyCall.ts`, `${folder}/claims.daily.test.ts`)
const repeated = inFile("kernel/payment/settle/existing.ts", `${folder}/claims.daily.test.ts`)
const claimer = inFile("plugins/batch-store/claimer.ts", "test/plugins/batch-store/claimer.daily.test.ts")
const held = inFile("plugins/batch-store/Claims.ts", "test/plugins/batch-store/storedChannels.test.ts")
const audited = inFile(`${plugin}/audit/compareChannels.ts`, `${folder}/audit/compareChannels.test.ts`)
const auditRead = inFile(`${plugin}/audit/auditChannels.ts`, `${folder}/audit/auditChannels.daily.test.ts`)
const auditCalls = inFile(`${plugin}/audit/channelRecords.ts`, `${folder}/audit/auditChannels.daily.test.ts`)
const decided = inFile("kernel/settlement/state/decide.ts", "test/kernel/settlement/state/decide.test.ts")

export const mutations: ReadonlyArray<Mutation> = [
  executed(
    "a claim whose channels were claimed meanwhile is unresolved",
    "if (moved === 0n && promise.payer === contract && shown.own.length === 0)",
    "if (false)"
  ),
  executed("a claim sold what was meant", "sold: soldIn(contract, shown, executed)", "sold: undefined"),
  identity("a claim of the stretch before is another", "[keyOf(at, payload, sequence - stretchLedgers)!]", "[]"),
  calls("a sweep that left nothing is another's", "context.noteSwept(payment, [", "void ([payment,"),
  repeated(
    "a repeated claim is given twice",
    'record.state !== "expired" && !record.delivered',
    'record.state !== "expired"'
  ),
  repeated("a claim's success is any caller's", "record.principal === principal.owner &&", ""),
  claimer(
    "a claim without an outcome keeps its channels",
    "if (!(yield* isUnresolved(claim.principal, identifier)))",
    "if (true)"
  ),
  held(
    "a claim is ended by its id alone",
    " and principal = ${principal} and payload = ${JSON.stringify(payload)}::jsonb",
    ""
  ),
  known(
    "a known channel has any configuration",
    "members.every((name) => fields[name] === config[name])",
    "members.every(() => true)"
  ),
  known("any id is a configuration's", "if (channelIdOf(at, config) !== channelId) return false", ""),
  known("a voucher's amount is not signed", "BigInt.asUintN(64, maxClaimableAmount)", "0n"),
  terms(
    "any receiver",
    `if (config.receiver !== payTo) return ["receiver_mismatch"`,
    `if (false) return ["receiver_mismatch"`
  ),
  terms("any receiver's authorizer", `if (config.receiverAuthorizer !== extra["receiverAuthorizer"])`, "if (false)"),
  terms("any delay", `if (config.withdrawDelay !== extra["withdrawDelay"])`, "if (false)"),
  terms(
    "any range of the delay",
    "if (withdrawDelay < withdrawDelayMin || withdrawDelay > withdrawDelayMax)",
    "if (false)"
  ),
  terms("an account of ours is a party", "if ([payer, payerAuthorizer, receiver].some(isOurs))", "if (false)"),
  terms(
    "a dearer settle than accepted",
    "isLessAllowed ? asked > most : asked !== most",
    "!isLessAllowed && asked !== most"
  ),
  terms("a cheaper verify than accepted", "isLessAllowed ? asked > most : asked !== most", "asked > most"),
  terms(
    "other terms than accepted",
    "if (binding.some((name) => accepted.extra[name] !== requirements.extra[name]))",
    "if (false)"
  ),
  deposit(
    "a call with other terms",
    "if (!isCall(call.invoked, at.address, expected.functionName, expected.args))",
    "if (false)"
  ),
  deposit("another call is authorized", "|| !sameBytes(encodeInvoked(authorized), encodeInvoked(call.invoked)))", ")"),
  deposit("two authorizations", "if (entry === undefined || others.length > 0)", "if (entry === undefined)"),
  deposit("another's authorization", "|| addressText(credentials.address) !== signer)", ")"),
  deposit("anything below a deposit", "if (!hasBelow(entry, expected))", "if (false)"),
  deposit("a second transfer below a deposit", "others.length === 0 && first.sub", "first.sub"),
  deposit("a call below the transfer", "first.subInvocations.length === 0 &&", ""),
  deposit("our account is a source", "if (isOurs(source) ||", "if ("),
  deposit("no depositor's signature", "return signatureHolds(subject, entry) ?", "return true ?"),
  deposit(
    "an authorization outlives the timeout",
    "return checkExpiry(expiresLedger, time.sequence) ?? late",
    "return checkExpiry(expiresLedger, time.sequence)"
  ),
  deposit("an authorization has ended", "return checkExpiry(expiresLedger, time.sequence) ?? late", "return late"),
  depositPayload(
    "a deposit of nothing",
    `if (payload.amount === 0n) return ["deposit_amount"`,
    `if (false) return ["deposit_amount"`
  ),
  depositCall("a deposit of any size", "if (payload.amount > most)", "if (false)"),
  depositCall(
    "a deposit's voucher above the balance",
    "const error = depositStateError(payload, state, balance)",
    "const error = undefined as CheckError"
  ),
  voucher("above the balance", "if (max > state.balance)", "if (false)"),
  voucher(
    "what was claimed counts again",
    `type === "refund" ? max < state.totalClaimed : max <= state.totalClaimed`,
    "max < state.totalClaimed"
  ),
  voucher(
    "a started withdrawal is no matter",
    `type === "voucher" && state.withdrawRequestedAt !== 0`,
    `type === "voucher" && state.withdrawRequestedAt < 0`
  ),
  voucher("a maximum below the price", `if (type === "voucher" && voucher.maxClaimableAmount < asked)`, "if (false)"),
  voucher("no signature", "return voucherError(config, voucher, context.vouchers)", "return undefined"),
  voucher("a wish for a refund is settled", `if (stage === "settle" && payload.type === "refund")`, "if (false)"),
  known(
    "a signature that verified counts for any amount",
    "&& known.signed.maxClaimableAmount === maxClaimableAmount",
    ""
  ),
  state(
    "a channel is read once",
    "this.#asOf(one) >= sequence - staleLedgersMax",
    "this.#asOf(one) >= 0 && sequence >= 0"
  ),
  state("an event of a channel changes nothing", "entry.known = { ...entry.known, ledger: 0 }", ""),
  state("an event counts against a newer reading", "if (entry.known.ledger >= ledger) return", ""),
  state("an event that cannot be read is none", "for (const [, entry] of named ?? []) drop(entry, ledger)", ""),
  state("a node behind is believed", "const isWatched = known.ledger >= this.#seenTo", "const isWatched = true"),
  state(
    "an older reading replaces a newer one",
    "before.known.ledger > known.ledger) return before.known",
    "false) return"
  ),
  state(
    "a reading outlives its ledger",
    "if (before !== undefined && before.known.ledger > sequence + aheadLedgersMax) this.#forgetAll()",
    ""
  ),
  state(
    "what is not there is read with each ledger",
    "entry.known.state !== undefined && entry.usedLedger",
    "entry.usedLedger"
  ),
  reads("without events nothing is read", "fresh(cache.due(", "Effect.succeed(cache.due("),
  reads(
    "no events are asked for",
    "const from = cache.askFrom(sequence)",
    "const from = undefined as number | undefined"
  ),
  events("events of any contract", "one.contractId !== contract || one.ledger < fromLedger", "one.ledger < fromLedger"),
  events(
    "events before the ledger asked for",
    "one.contractId !== contract || one.ledger < fromLedger",
    "one.contractId !== contract"
  ),
  events("a part of the ledgers is all", "if (latestLedger - fromLedger >= ledgersMax)", "if (latestLedger < 0)"),
  events(
    "a later page's ledgers are whole",
    "page === 0 ? answer.latestLedger : Math.min(latestLedger, answer.latestLedger)",
    "answer.latestLedger"
  ),
  claims("claims of any receiver", "if (config.receiver !== payTo) return named(", "if (false) return named("),
  claims("more than signed", "if (totalClaimed > maxClaimableAmount)", "if (false)"),
  claims(
    "no signature of the authorizer",
    "if (signature === undefined || expiresAt === undefined) return notConfigured const { at }",
    "const { at }"
  ),
  claims(
    "a refund claims another channel",
    `if (others) return ["refund_payload"`,
    `if (false) return ["refund_payload"`
  ),
  claims(
    "any signature of a claim",
    "return isAuthorized(offline.crypto, authorizer, claimDigest(at, claimedTotals(at, claims), expiresAt), signature)",
    "return isAuthorized(offline.crypto, authorizer, claimDigest(at, claimedTotals(at, claims), expiresAt), signature) || true"
  ),
  claims(
    "any signature of a refund",
    "return isAuthorized(crypto, config.receiverAuthorizer, digest, signature)",
    "return isAuthorized(crypto, config.receiverAuthorizer, digest, signature) || true"
  ),
  claims(
    "any sweep",
    `if (payload.receiver !== payTo) return ["receiver_mismatch"`,
    `if (false) return ["receiver_mismatch"`
  ),
  identity(
    "each claim is another",
    "return `claim:${Hex.encode(claimDigest(at, claimedTotals(at, payload.claims), 0))}:${stretch}`",
    "return `claim:${Math.random()}:${stretch}`"
  ),
  identity("a sweep is known by its receiver alone", ":${totalClaimed}:${Math.floor", ":${Math.floor"),
  after("a refund is not awaited in the state", "return state.refundNonce > payload.nonce", "return true"),
  after(
    "a deposit is not awaited in the state",
    "return state.balance >= payload.voucher.maxClaimableAmount",
    "return true"
  ),
  wire("any number of claims", "if (value.length > claimsMax)", "if (false)"),
  wire("ids in any spelling", "if (!isHex(channelId, 32))", "if (typeof channelId !== 'string')"),
  decided(
    "a failure without a nonce is unresolved",
    `return snapshot.nonce === "none" || isUnspent(settlement, snapshot)`,
    "return isUnspent(settlement, snapshot)"
  ),
  audited("a channel's sum is not compared", "else if (sum.balance !== state.balance)", "else if (false)"),
  audited("a recorded call needs no event", "if (!events.some(", "if (false && !events.some("),
  audited("the deposits of others are not summed", "sum + (change(event) ?? 0n), 0n)", "sum, 0n)"),
  audited("a channel that is older than the history is summed", "if (!sum.isComplete) older += 1 else if", "if"),
  audited(
    "a channel that changed while it was read is compared",
    "else if (modifiedLedger > view.toLedger) changed += 1",
    ""
  ),
  audited("a recorded claim is not compared", "recorded.total > claimed", "recorded.total < 0n"),
  audited("a claim is compared before the endpoint has it", "if (ledger > view.toLedger) continue", ""),
  audited("the store's claimed total is not compared", "if (totalClaimed > claimed)", "if (false)"),
  audited("more may be claimed than was charged", "if (delegated && claimed > charged)", "if (false)"),
  audited(
    "a seller's own claims count as the store's",
    "if (delegated && claimed > charged)",
    "if (claimed > charged)"
  ),
  audited("a contract may have less than it owes", "holding.amount < held + unsettled", "false"),
  audited("what receivers are owed is not summed", "sum.unsettled += state.totalClaimed - state.totalSettled", ""),
  audited(
    "a balance of another moment is compared",
    "holding !== undefined && isOneMoment &&",
    "holding !== undefined &&"
  ),
  audited("a channel that is gone is never reported", "newest + lifeLedgersMin > view.toLedger", "false"),
  audited("an archived channel is reported", "newest + lifeLedgersMin > view.toLedger", "newest > 0"),
  auditRead("the contract's balance is not read", "holdings: yield* readHeld(endpoint, pairs)", "holdings: new Map()"),
  auditCalls(
    "a refund names no channel",
    "[batchFunctions.refund]: { config: 0, claims: 5 }",
    "[batchFunctions.refund]: {}"
  )
]
