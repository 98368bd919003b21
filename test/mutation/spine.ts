// Guards of settlement, channels, budgets and operators' moves that unit and process tests hold, each taken out once.
// `npm run mutation -- spine`.
import type { Mutation } from "./Mutation.ts"

const vitest = (file: string) => [
  "node_modules/vitest/vitest.mjs",
  "run",
  "--config",
  "test/vitest.config.ts",
  `test/kernel/${file}`
]
const by = (
  file: string,
  environment: Readonly<Record<string, string>> = { TOLLKEEPER_TEST_DATABASES: "postgres" }
) => ({ catcher: vitest(file), environment })
const outcomes = by("settlement/outcomes.slow.test.ts", {
  TOLLKEEPER_TEST_SLOW: "only",
  TOLLKEEPER_TEST_DATABASES: "postgres"
})
const machineTests = by("settlement/state/decide.test.ts", {})
const driveTests = by("settlement/state/planSubmission.test.ts", {})
const databaseBounds = by("database/bounds.daily.test.ts")
const writes = by("database/writes.daily.test.ts")
const rotations = by("settlement/rotation.daily.test.ts", { TOLLKEEPER_TEST_DATABASES: "postgres" })
const remoteSigners = by("signer/remote.daily.test.ts", {})
const poolers = by("database/pooler.daily.test.ts")
const replicas = by("settlement/channels/replicas.daily.test.ts", { TOLLKEEPER_TEST_DATABASES: "pglite" })
const poolTests = by("settlement/channels/ChannelPool.test.ts", {})
const poolUnderLoad = by("settlement/channels/PoolUnderLoad.test.ts", {})

const machine = "kernel/settlement/state/decide.ts"
const driving = "kernel/settlement/state/planSubmission.ts"
const spending = "kernel/settlement/follower/findSpending.ts"
const settlements = "kernel/settlement/store/SqlSettlements.ts"
const ending = "kernel/settlement/store/batchOutcomes.ts"
const noting = "kernel/settlement/store/batchSentNotes.ts"
const store = "kernel/settlement/channels/ChannelStore.ts"
const pool = "kernel/settlement/channels/ChannelPool.ts"
const connections = "kernel/database/Connections.ts"
const queue = "kernel/settlement/channels/ChannelQueue.ts"
const admission = "kernel/settlement/channels/AdmissionControl.ts"
const rows = "kernel/settlement/channels/ChannelRows.ts"
const budgetStatements = "kernel/budget/budgetStatements.ts"
const channels = "kernel/settlement/channels/reconcileChannels.ts"
const sponsor = "kernel/settlement/sponsor/SponsorTransactions.ts"
const moves = "kernel/settlement/operators/OperatorActions.ts"
const principals = by("payment/principals.daily.test.ts")
const unrecordable = by("payment/settle/unavailable.test.ts", {})
const knowing = "kernel/payment/settle/existing.ts"
const settling = "kernel/payment/settle/settlePayment.ts"
const recording = "kernel/payment/settle/recordSettlement.ts"
const work = "kernel/payment/settle/SettlementWorker.ts"
const flying = "kernel/payment/settle/joinFlight.ts"
const sponsoring = "kernel/settlement/sponsor/Sponsor.ts"

const change = (file: string, from: string, to: string) => [{ file, from, to }]

export const mutations: ReadonlyArray<Mutation> = [
  {
    name: "an unspent nonce read before the failure is accepted",
    changes: change(machine, "if (snapshot.ledger < landed.executed.ledger)", "if (snapshot.ledger < 0)"),
    ...machineTests
  },
  {
    name: "an unspent nonce of after the expiry is believed",
    changes: change(machine, 'nonce === "unspent" && ledger <= authorizationExpiresLedger', 'nonce === "unspent"'),
    ...machineTests
  },
  {
    name: "a nonce read before the sequence passed is accepted",
    changes: change(
      machine,
      "if (!isGone && !hasPassed(settlement, snapshot)) return",
      "if (isGone && !isGone) return"
    ),
    ...machineTests
  },
  {
    name: "overtaken below our number",
    changes: change(
      machine,
      "snapshot.sequence >= settlement.channelSequence\n",
      "snapshot.sequence >= settlement.channelSequence - 1n\n"
    ),
    ...machineTests
  },
  {
    name: "the channel believed before the bound",
    changes: change(
      machine,
      "if (snapshot === undefined || snapshot.ledger < settlement.authorizationExpiresLedger) return",
      "if (snapshot === undefined) return"
    ),
    ...machineTests
  },
  {
    name: "another authorization with the nonce counts as the payment",
    changes: change(spending, 'uses.length === 1 && uses[0] === "same"', "uses.length === 1"),
    ...by("settlement/follower/findSpending.test.ts", {})
  },
  {
    name: "a cancel after one refusal of many",
    changes: change(driving, "attempts.every(isHopeless)", "attempts.some(isHopeless)"),
    ...driveTests
  },
  {
    name: "a bid above its ceiling",
    changes: change(driving, "higher > ceiling ? ceiling : higher", "higher"),
    ...driveTests
  },
  {
    name: "an end that takes any state",
    changes: change(
      ending,
      "where id = end_of and state in ('prepared', 'submitted') and (attempts_known is null",
      "where id = end_of and (attempts_known is null"
    ),
    ...by("settlement/store/SqlSettlements.test.ts")
  },
  {
    name: "a delivery claimed twice",
    changes: change(noting, "and s.state = 'settled' and s.delivered_at is null", "and s.state = 'settled'"),
    ...by("settlement/store/SqlSettlements.test.ts")
  },
  {
    name: "no bound of open settlements",
    changes: change(settlements, "count(*) < ${pendingSettlementsMax}::int", "${pendingSettlementsMax}::int > 0"),
    ...by("settlement/store/SqlSettlements.test.ts")
  },
  {
    name: "the in-process twin gets the success",
    changes: change("kernel/payment/settle/SingleFlight.ts", 'answer._tag === "Settled" ?', 'answer.payer === "" ?'),
    ...by("payment/Flights.test.ts", {})
  },
  {
    name: "a twin that does not wait for its leader",
    changes: change(
      "kernel/payment/settle/joinFlight.ts",
      "boarded.isLeader ? lead(boarded)",
      "boarded ? lead(boarded)"
    ),
    ...by("payment/twins.daily.test.ts")
  },
  {
    name: "twins that do not receive the record",
    changes: change(work, `if (started._tag === "Recorded") flight.publish`, `if (payer === "") flight.publish`),
    ...by("payment/twins.daily.test.ts")
  },
  {
    name: "a request that waits for a silent database",
    changes: change(
      "kernel/payment/settle/joinFlight.ts",
      "timeout: yield* timeLeft(began, limits),",
      `timeout: "1 hour",`
    ),
    ...by("payment/twins.daily.test.ts")
  },
  {
    name: "a verification that asks the database",
    changes: change(
      "kernel/payment/verifyPayment.ts",
      "if (Option.isNone(payment.identifier) && !isOwnSuccess) return ended",
      ""
    ),
    ...by("payment/cost.daily.test.ts")
  },
  {
    name: "an end that verify forgets",
    changes: change(
      "kernel/payment/verifyPayment.ts",
      "outcomes.ended(findQuery(payment, scheme))",
      "Option.none<never>()"
    ),
    ...by("payment/ended.daily.test.ts")
  },
  {
    name: "an end that verify does not read",
    changes: change(knowing, "    yield* outcomes.complete(records)\n", ""),
    ...by("payment/ended.daily.test.ts")
  },
  {
    name: "a verification that repeats a cached settlement",
    changes: change(
      "kernel/payment/verifyPayment.ts",
      'state === "settled" && principal === payment.principal.owner',
      "false && state === principal"
    ),
    ...by("payment/resend.daily.test.ts")
  },
  {
    name: "a verification of what is spent without its record",
    changes: change(
      "kernel/payment/verifyPayment.ts",
      "authorizationSpent === true || authorizationExpiresLedger !== undefined",
      "authorizationExpiresLedger !== undefined"
    ),
    ...by("payment/resend.daily.test.ts")
  },
  {
    name: "a verification of what has expired without its record",
    changes: change(
      "kernel/payment/verifyPayment.ts",
      "authorizationSpent === true || authorizationExpiresLedger !== undefined",
      "authorizationSpent === true"
    ),
    ...by("payment/resend.daily.test.ts")
  },
  {
    name: "an open payment whose own transaction landed, refused by verify",
    changes: change(
      "kernel/payment/verifyPayment.ts",
      'if (found !== "New") return found === "Open" ? validFor(checked) : found',
      'if (found !== "New") return found === "Open" ? checked : found'
    ),
    ...by("payment/resend.daily.test.ts")
  },
  {
    name: "a lost record of the caller's own, refused by verify",
    changes: change("kernel/payment/verifyPayment.ts", 'if (lost?._tag === "Ours") return validFor(checked)', ""),
    ...by("payment/resend.daily.test.ts")
  },
  {
    name: "a lost record that is not shown to be the caller's, verified as spent elsewhere",
    changes: change("kernel/payment/verifyPayment.ts", 'lost?._tag === "Unclaimed" ?', 'lost?._tag === "Ours" ?'),
    ...by("payment/resend.daily.test.ts")
  },
  {
    name: "a delivered success verified again by its identifier",
    changes: change(
      knowing,
      "return verifyAnswerOf(answerFinal(record, false), record)",
      'return { _tag: "Valid", payer: record.payer }'
    ),
    ...by("payment/resend.daily.test.ts")
  },
  {
    name: "an unresolved payment verified",
    changes: change(knowing, "return outcomeUnknown(answer)", 'return { _tag: "Valid", payer: record.payer }'),
    ...by("payment/resend.daily.test.ts")
  },
  {
    name: "a metered payment's record compared with the maximum",
    changes: change(knowing, '(stage === "verify" &&', '(stage !== "verify" &&'),
    ...by("../plugins/x402-upto/settle.daily.test.ts")
  },
  {
    name: "a memory of ends without a bound",
    changes: change(
      "kernel/settlement/follower/EndedAuthorizationsCache.ts",
      "this.#records.size > endedMax",
      "this.#records.size < 0"
    ),
    ...by("settlement/follower/EndedAuthorizationsCache.test.ts", {})
  },
  {
    name: "any identifier reads the success",
    changes: change(
      knowing,
      "Option.isSome(record.identifier) && Option.getOrUndefined(payment.identifier) === record.identifier.value",
      "Option.isSome(payment.identifier)"
    ),
    ...principals
  },
  {
    name: "a success for any principal",
    changes: change(
      knowing,
      "if (record.principal !== payment.principal.owner) return",
      "if (record.id === '') return"
    ),
    ...principals
  },
  {
    name: "a stranger's terms frame the owner",
    changes: change(
      knowing,
      "record.principal === payment.principal.owner && !isSame",
      "record.principal !== '' && !isSame"
    ),
    ...principals
  },
  {
    name: "a conflict names a transaction that was never seen",
    changes: change(
      "kernel/payment/answers.ts",
      "refuse(conflict(record), record.transaction)",
      "refuse(conflict(record), Option.some(hashOf(record)))"
    ),
    ...principals
  },
  {
    name: "pending names a transaction that did not pay",
    changes: change(knowing, "transaction: hashOf(record)", "transaction: record.innerHash"),
    ...by("payment/settle/existing.test.ts", {})
  },
  {
    name: "verify gives out a success that cannot be recorded",
    changes: change(
      "kernel/payment/verifyPayment.ts",
      'already._tag === "Valid" ? yield* sponsor.unrecordable : Option.none()',
      "Option.none<string>()"
    ),
    ...by("payment/verifyPayment.test.ts", {})
  },
  {
    name: "settle's late answer keeps its known cause back",
    changes: [
      ...change(
        flying,
        "import { makeUnavailable }",
        'import { Option } from "effect"\nimport { makeUnavailable, unavailable as busyFor }'
      ),
      ...change(flying, "onTimeout: Effect.map(unavailable(), ", "onTimeout: Effect.map(Effect.sync(() => general), "),
      ...change(flying, "const decided =", "const general = busyFor(Option.none())\nconst decided =")
    ],
    ...unrecordable
  },
  {
    name: "settle's failed answer keeps its known cause back",
    changes: change(
      "kernel/payment/settle/unavailable.ts",
      "onSome: (why) => busyFor(why, payer)",
      "onSome: () => busy(payer)"
    ),
    ...by("payment/unrecordable.daily.test.ts", { TOLLKEEPER_TEST_DATABASES: "pglite" })
  },
  {
    name: "work that fails keeps its known cause back",
    changes: change(
      work,
      "Effect.andThen(logPaymentError(error), unavailable(payer))",
      "Effect.as(logPaymentError(error), busy(payer))"
    ),
    ...unrecordable
  },
  {
    name: "work without a channel keeps its known cause back",
    changes: change(work, "return answered(yield* unavailable(payer))", "return answered(busy(payer))"),
    ...unrecordable
  },
  {
    name: "a scheme's own check that fails keeps its known cause back",
    changes: [
      ...change("kernel/payment/Facilitator.ts", "import { unsupportedScheme,", "import { busy, unsupportedScheme,"),
      ...change("kernel/payment/Facilitator.ts", "(covered, undecided())", "(covered, Effect.succeed(busy()))")
    ],
    ...unrecordable
  },
  {
    name: "verify's late answer keeps its known cause back",
    changes: change("kernel/payment/Facilitator.ts", "onSome: cannotSettle", "onSome: () => verifyTimedOut"),
    ...by("payment/unrecordable.daily.test.ts", { TOLLKEEPER_TEST_DATABASES: "pglite" })
  },
  {
    name: "an authorization about to expire is refused for good",
    changes: change("kernel/payment/settle/settlePayment.ts", 'if (adopted?._tag === "Alive")', "if (false)"),
    ...by("payment/resend.daily.test.ts", { TOLLKEEPER_TEST_DATABASES: "pglite" })
  },
  {
    name: "an open payment's hash for any principal",
    changes: change(
      "kernel/payment/answers.ts",
      '"the authorization is being settled for another caller", payer)\n      )',
      '"the authorization is being settled for another caller", payer), Option.some(record.innerHash)\n      )'
    ),
    ...principals
  },
  {
    name: "a delivery claimed by any principal",
    changes: change(noting, "and s.principal = c.principal and s.state = 'settled'", "and s.state = 'settled'"),
    ...by("settlement/store/SqlSettlements.test.ts")
  },
  {
    name: "an address owns what it settled",
    changes: change(
      "kernel/http/Authentication.ts",
      "{ owner: anonymous, source: principalOf(sourceOf(request)), keyed: false }",
      "{ owner: principalOf(sourceOf(request)), source: principalOf(sourceOf(request)), keyed: false }"
    ),
    ...principals
  },
  {
    name: "keyless callers share one budget",
    changes: change(
      "kernel/http/Authentication.ts",
      "{ owner: anonymous, source: principalOf(sourceOf(request)), keyed: false }",
      "{ owner: anonymous, source: anonymous, keyed: false }"
    ),
    ...principals
  },
  {
    name: "identifiers across payers",
    changes: change(settlements, "          and payer = ${payer}::text and identifier", "          and identifier"),
    ...by("settlement/store/SqlSettlements.test.ts")
  },
  {
    name: "lookups across principals",
    changes: change(settlements, "where principal = ${principal} and ${where}", "where ${where}"),
    ...by("settlement/store/SqlSettlements.test.ts")
  },
  {
    name: "an adopted payment without its charge",
    changes: change(
      settlements,
      "budget.charge(counted(settlement.principal), settlement.feeChargedStroops,",
      "budget.charge(counted(settlement.principal), 0n,"
    ),
    ...by("settlement/store/SqlSettlements.test.ts")
  },
  {
    name: "a channel kept after its number became unknown",
    changes: change(ending, "case when g.number_used then 0", "case when coalesce(g.number_used, true) then 0"),
    ...by("settlement/store/SqlSettlements.test.ts")
  },
  {
    name: "a lease given back by a stale holder",
    changes: change(
      store,
      "where address = ${lease.address} and fence = ${lease.fence} and settlement is null",
      "where address = ${lease.address} and settlement is null"
    ),
    ...by("settlement/Leases.test.ts")
  },
  {
    name: "a lease of work taken while it is held",
    changes: change(
      "kernel/settlement/Leases.ts",
      "where l.holder = excluded.holder or l.until < clock_timestamp() returning 1",
      "where true returning 1"
    ),
    ...by("settlement/Leases.test.ts")
  },
  {
    name: "channels leased in no order",
    changes: change(queue, "yield* Deferred.await(turn.called)\n", ""),
    ...poolTests
  },
  {
    name: "one line for all principals",
    changes: change(queue, "this.#queue.add(principal, turn)", 'this.#queue.add("", turn)'),
    ...poolTests
  },
  {
    name: "the follower woken by each payment, in the ledger of its record too",
    changes: change(work, "if (sentLedger > attempt.recordedLedger) yield*", "yield*"),
    ...by("payment/settle/SettlementWorker.test.ts", {})
  },
  {
    name: "a payment during whose sending a ledger closed followed by the next one alone",
    changes: change(work, "if (sentLedger > attempt.recordedLedger) yield* follower.wake", ""),
    ...by("payment/settle/SettlementWorker.test.ts", {})
  },
  {
    name: "the sponsor polled as often while idle",
    changes: change(sponsoring, "(attended || notes.isFaulty() ? every : everyUnattended)", "every"),
    ...by("settlement/sponsor/Sponsor.test.ts", {})
  },
  {
    name: "the sponsor read seldom while payments come",
    changes: change(sponsoring, "(attended || notes.isFaulty() ? every", "(notes.isFaulty() ? every"),
    ...by("settlement/sponsor/Sponsor.test.ts", {})
  },
  {
    name: "a sponsor that cannot pay read seldom",
    changes: change(sponsoring, "(attended || notes.isFaulty() ? every", "(attended ? every"),
    ...by("settlement/sponsor/Sponsor.test.ts", {})
  },
  {
    name: "a seed parsed for each signature",
    changes: change(
      "kernel/signer/Vault.ts",
      "(signer ??= this.#crypto.ed25519Signer(Redacted.value(seed)))(hash)",
      "this.#crypto.ed25519Signer(Redacted.value(seed))(hash)"
    ),
    ...by("signer/Signer.test.ts", {})
  },
  {
    name: "a question to the store for each channel",
    changes: change(queue, "Math.min(takeMax, 1 + turns.behind)", "1"),
    ...poolTests
  },
  {
    name: "a channel leased for an interrupted waiter is not released",
    changes: change(queue, "if (!turns.give(lease)) yield* release(lease)", "turns.give(lease)"),
    ...poolTests
  },
  {
    name: "channels freed by a close not counted before they are leased",
    changes: change(admission, "Math.min(channels, this.#scarcity.returned)", "0"),
    ...poolUnderLoad
  },
  {
    name: "freed channels counted on after others took them",
    changes: change(
      "kernel/settlement/channels/ReleaseRateEstimator.ts",
      "this.#returned = Math.max(0, this.#returned - returned)\n",
      ""
    ),
    ...poolTests
  },
  {
    name: "an unbounded queue for channels",
    changes: change(admission, " || own >= placesOfOneMax || this.#placesInAll >= placesMax", ""),
    ...poolTests
  },
  {
    name: "no bound of one principal's places",
    changes: change(admission, " || own >= placesOfOneMax", ""),
    ...poolTests
  },
  {
    name: "hopeless requests wait",
    changes: change(admission, "if (excess > 0 || own", "if (own"),
    ...poolTests
  },
  {
    name: "the rate of channels assumed, not measured",
    changes: change(admission, "this.#scarcity.ratePerMilli(now, ledgerMillis) ?? reckoned", "reckoned"),
    ...poolTests
  },
  {
    name: "half of a wait refused though it could be served",
    changes: change(
      admission,
      "Math.min(2 * linear, Math.ceil(linear / ledgerMillis) * ledgerMillis + noticedMillis)",
      "2 * linear"
    ),
    ...poolUnderLoad
  },
  {
    name: "the whole wait estimated, though channels come back by ledgers",
    changes: change(admission, "Math.ceil(linear / ledgerMillis) * ledgerMillis + noticedMillis", "linear"),
    ...poolUnderLoad
  },
  {
    name: "the pause between two closes taken for a slow rate",
    changes: change(
      "kernel/settlement/channels/ReleaseRateEstimator.ts",
      "Math.max(1, (leases * ledgerMillis) / window)",
      "1"
    ),
    ...poolUnderLoad
  },
  {
    name: "a place that is never left",
    changes: change(pool, "Effect.ensuring(lease(principal, waitMax), leave)", "lease(principal, waitMax)"),
    ...poolTests
  },
  {
    name: "a payment verified before its admission",
    changes: change(
      "kernel/payment/settle/settlePayment.ts",
      `const taken = yield* admit(payment, scheme, startedAt)
`,
      `yield* verifyWithinTimeout(payment, scheme, "settle")
  const taken = yield* admit(payment, scheme, startedAt)
`
    ),
    ...by("settlement/channels/overload.daily.test.ts", { TOLLKEEPER_TEST_DATABASES: "pglite" })
  },
  {
    name: "a lease lost to the end of a wait",
    changes: change(
      queue,
      "return own !== undefined\n      }, Effect.uninterruptible)",
      "return own !== undefined\n      })"
    ),
    ...poolTests
  },
  {
    name: "a channel leased by an abandoned statement",
    changes: change(queue, "yield* toItsEnd(store.take(asked))", "yield* store.take(asked)"),
    ...poolTests
  },
  {
    name: "a channel kept for an abandoned statement",
    changes: change(queue, "toItsEnd(store.release(lease)).pipe(", "store.release(lease).pipe("),
    ...poolTests
  },
  {
    name: "a lease lost to an interrupt",
    changes: change(
      queue,
      "return Exit.isSuccess(exit) || turn.lease === undefined ? Effect.void : release(turn.lease)",
      "return Effect.void"
    ),
    ...poolTests
  },
  {
    name: "keys taken up before their rotation is recorded",
    changes: change(
      "kernel/settlement/channels/KeyRotation.ts",
      "            yield* journal.record((rotations) => changeOf(rotations, before, next, keysOf(next)))\n",
      "            yield* Effect.forkDetach(Effect.ignore(journal.record((rotations) => changeOf(rotations, before, next, keysOf(next)))))\n"
    ),
    ...rotations
  },
  {
    name: "a replica follows one rotation and not a chain",
    changes: change(
      "kernel/settlement/channels/rotationStatus.ts",
      "while (chain.length <= rotations.length)",
      "while (chain.length < 2)"
    ),
    ...rotations
  },
  {
    name: "a replica waits for the newest keys though its sources hold newer ones",
    changes: change(
      "kernel/settlement/channels/rotationStatus.ts",
      "chainFrom(rotations, kind, before[kind]).includes(next[kind])",
      "newestOf(rotations, kind, before[kind]) === next[kind]"
    ),
    ...rotations
  },
  {
    name: "a rotation that a failover lost stays lost",
    changes: change(
      "kernel/settlement/channels/KeyRotation.ts",
      'if (state === "ahead") yield* recordAgain',
      'if (state === "ahead") yield* Effect.void'
    ),
    ...rotations
  },
  {
    name: "a rotation undoes that of another replica",
    changes: change(
      "kernel/settlement/channels/KeyRotation.ts",
      "[before.sponsor, next.sponsor, ...next.formerSponsors].includes(newest)",
      'newest !== ""'
    ),
    ...rotations
  },
  {
    name: "a rotation is done while a replica signs with replaced keys",
    changes: change(
      "kernel/settlement/channels/KeyRotation.ts",
      "journal.advance(rotation, status.replicasBehind === 0)",
      "journal.advance(rotation, true)"
    ),
    ...rotations
  },
  {
    name: "a payment verified while the database accepts no writes",
    changes: change(
      "kernel/settlement/sponsor/Sponsor.ts",
      "if (unwritable !== undefined) return Option.some(unwritable)",
      ""
    ),
    ...writes
  },
  {
    name: "a probe that needs no new space",
    changes: change(
      "migrations/kernel/0018_write_probes.sql",
      "with (fillfactor = 10, autovacuum_vacuum_threshold = 200, autovacuum_vacuum_scale_factor = 0)",
      ""
    ),
    ...writes
  },
  {
    name: "a probe that waits for a commit without end",
    changes: change("kernel/health/WriteProbe.ts", "    Effect.timeout(writeTimeout),\n", ""),
    ...writes
  },
  {
    name: "a failed write is never retried",
    changes: change(
      "kernel/health/WriteProbe.ts",
      "onSuccess: () => {\n      failures = 0\n      return set(undefined)",
      `onSuccess: () => {
      failures = 0
      return failure === undefined ? set(undefined) : Effect.void`
    ),
    ...writes
  },
  {
    name: "a rotation that drops the old sponsor's authorizations",
    changes: change(
      "kernel/settlement/channels/KeyRotation.ts",
      "!isSameSponsor && !next.formerSponsors.includes(before.sponsor)",
      "!isSameSponsor && next.formerSponsors.includes(next.sponsor)"
    ),
    ...rotations
  },
  {
    name: "an external signer's word taken for a signature",
    changes: change(
      "kernel/signer/remote/RemoteAccount.ts",
      "verifyEd25519(crypto, publicKey, hash, signature)",
      "signature.length === 64"
    ),
    ...remoteSigners
  },
  {
    name: "a channel leased before the external signer was checked",
    changes: change("kernel/settlement/sponsor/Sponsor.ts", "yield* signer.assure\n", "\n"),
    ...remoteSigners
  },
  {
    name: "a channel leased while an external signer does not sign",
    changes: change("kernel/settlement/sponsor/Sponsor.ts", "if (unsigned !== undefined) return unsigned", ""),
    ...remoteSigners
  },
  {
    name: "named statements behind a connection pooler",
    changes: change("kernel/database/Database.ts", ": { prepare: false })", ": {})"),
    ...poolers
  },
  {
    name: "transactions without limits behind a connection pooler",
    changes: change("kernel/database/lanedClient.ts", "limits === undefined ? pool.reserve :", "pool ? pool.reserve :"),
    ...poolers
  },
  {
    name: "a replica that does not receive what another published",
    changes: change(
      "kernel/facts/FactsNotifier.ts",
      ".payload !== own) yield* onNotification",
      ".payload === own) yield* onNotification"
    ),
    ...poolers
  },
  {
    name: "the wait for an answer without end",
    changes: change(
      "kernel/database/Database.ts",
      "payments: Duration.millis(values.answer_timeout_ms),",
      "payments: forever,"
    ),
    ...databaseBounds
  },
  {
    name: "the wait for a connection without end",
    changes: change(
      "kernel/database/Database.ts",
      "connectionWait: Duration.millis(values.connection_wait_ms),",
      "connectionWait: forever,"
    ),
    ...databaseBounds
  },
  {
    name: "a pool that fails because it cannot grow",
    changes: change(connections, "if (refusal === undefined) return yield* exit", "return yield* exit"),
    ...databaseBounds
  },
  {
    name: "a connection leased with an abandoned transaction",
    changes: change(
      connections,
      "Effect.ensuring(cleanUp(exit.value, leftover), giveBack)",
      "Effect.ensuring(leftover, giveBack)"
    ),
    ...databaseBounds
  },
  {
    name: "background work on every connection",
    changes: change(connections, "Semaphore.makeUnsafe(half(max))", "Semaphore.makeUnsafe(max)"),
    ...databaseBounds
  },
  {
    name: "a channel leased without its key",
    changes: change(
      store,
      "address = any(${signer.channels}) and state = 'ready'\n              and sequence is not null and settlement is null",
      "sponsor = ${signer.sponsor} and state = 'ready'\n              and sequence is not null and settlement is null"
    ),
    ...replicas
  },
  {
    name: "a channel retired that another replica requires",
    changes: change(rows, "and (required_by = ${settingsId} or required_until < clock_timestamp())", ""),
    ...replicas
  },
  {
    name: "former channels kept for ever",
    changes: change(
      "kernel/signer/Vault.ts",
      "former.filter((address) => !channels.includes(address))",
      "former.slice(former.length)"
    ),
    ...replicas
  },
  {
    name: "a chore decided before another's transaction",
    changes: change(
      "kernel/settlement/sponsor/SponsorJournal.ts",
      "where ${after ?? null}::text is not distinct from",
      "where true or ${after ?? null}::text ="
    ),
    ...by("settlement/channels/reconcileChannels.daily.test.ts")
  },
  {
    name: "no bound for a principal",
    changes: change(
      budgetStatements,
      "where b.reserved_stroops + b.committed_stroops + excluded.reserved_stroops <= ${bounds.own}::int8 returning 1",
      "returning 1"
    ),
    ...by("budget/Budget.test.ts")
  },
  {
    name: "nothing kept for keyed principals",
    changes: change(
      budgetStatements,
      "(${keyed}::boolean or anonymous + ${stroops}::int8 <= ${bounds.inAll / 2n}::int8)",
      "true"
    ),
    ...by("budget/Budget.test.ts")
  },
  {
    name: "a reservation settled on the day it ends",
    changes: change(budgetStatements, "where b.day = e.budget_day and", "where b.day = current_date and"),
    ...by("budget/Budget.test.ts")
  },
  {
    name: "a sponsor that pays for failing attempts",
    changes: change(
      channels,
      "if (sponsorAccount.balanceStroops < costOf(chores) + sponsorReserveStroops) {",
      "if (sponsorAccount.balanceStroops < 0n) {"
    ),
    ...by("settlement/channels/reconcileChannels.daily.test.ts")
  },
  {
    name: "two concurrent sponsor transactions",
    changes: change("migrations/kernel/0003_sponsor_transactions.sql", "create unique index", "create index"),
    ...by("settlement/channels/reconcileChannels.daily.test.ts")
  },
  {
    name: "a sponsor transaction expired by a node that forgot",
    changes: change(sponsor, "if (hasPassed && answer.oldestLedger <= ledgerMax - lifeLedgers)", "if (hasPassed)"),
    ...by("settlement/channels/reconcileChannels.daily.test.ts")
  },
  {
    name: "a channel's number corrected from an older node",
    changes: change(
      store,
      "and sequence = ${known}::int8 and sequence_ledger <= ${asOfLedger} returning 1",
      "and sequence = ${known}::int8 returning 1"
    ),
    ...by("settlement/channels/reconcileChannels.daily.test.ts")
  },
  {
    name: "an operator that ends an open settlement",
    changes: change(moves, "where s.id = old.id and s.state = 'unresolved'", "where s.id = old.id"),
    ...by("settlement/operators/OperatorActions.daily.test.ts")
  },
  {
    name: "given up without waiting for the bound",
    changes: change(
      moves,
      "channel: { sequenceUsed: undefined, ledger: authorizationExpiresLedger }",
      "channel: { sequenceUsed: undefined, ledger: 0 }"
    ),
    ...by("settlement/operators/OperatorActions.daily.test.ts")
  },
  {
    name: "a lost record called spent elsewhere",
    changes: change(
      settling,
      "const adopted = yield* adoption.adopt(request.payment, request.scheme, refused)",
      "const adopted = adoption === undefined ? ({ _tag: 'Ours' } as const) : undefined"
    ),
    ...outcomes
  },
  {
    name: "a lost record called expired",
    changes: change(
      settling,
      "refused.authorizationSpent === true || refused.authorizationExpiresLedger !== undefined",
      "refused.authorizationSpent === true"
    ),
    ...by("payment/resend.daily.test.ts")
  },
  {
    name: "spent by another transaction, and reported expired",
    changes: change(
      "kernel/settlement/state/decide.ts",
      "return end(Ending.spentUnused(expired, spending))",
      "return end(expired)"
    ),
    ...machineTests
  },
  {
    name: "an empty scan proves absence",
    changes: change(
      "kernel/settlement/state/decide.ts",
      'if (use.isDated) return late >= unresolvedAfterLedgers ? end(Ending.unresolved(undefined, ledger)) : { _tag: "Wait" }',
      "if (use.isDated) return end(expired)"
    ),
    ...machineTests
  },
  {
    name: "a foreign transaction adopted",
    changes: change(
      spending,
      "return sponsors.has(accountText(bump.feeSource)) || channels.has(sourceOf(inner)) ? inner : undefined",
      "return inner"
    ),
    ...by("settlement/follower/findSpending.test.ts", {})
  },
  {
    name: "only this process's channels are ours",
    changes: change(spending, "sponsors.has(accountText(bump.feeSource)) || channels", "channels"),
    ...by("settlement/follower/findSpending.test.ts", {})
  },
  {
    name: "a channel not released when the budget refuses",
    changes: change(work, 'case "BudgetExceeded":\n', 'case "BudgetExceeded":\n      channel.value.keep()\n'),
    ...outcomes
  },
  {
    name: "the envelope is bounded by the machine's clock",
    changes: [
      {
        file: recording,
        from: "timeMax: BigInt(ledger.closedAtSeconds + timeNetSeconds)",
        to: "timeMax: BigInt(Math.ceil(settling.startedAt.at / 1_000) + timeNetSeconds)"
      }
    ],
    ...by("ledger/machineClock.daily.test.ts", {})
  },
  ...(
    [
      ["no inclusion bid in the budget", recording, " + mostBid", ""],
      ["no resource fee in the budget", recording, "verified.resourceFeeStroops + mostBid", "mostBid"],
      [
        "the total fee ceiling is not enforced",
        "kernel/config/Network.ts",
        "return inclusionStroopsMax < left ? inclusionStroopsMax : left",
        "return left < 0n ? left : inclusionStroopsMax"
      ]
    ] as const
  ).map(([name, file, from, to]) => ({
    name,
    changes: change(file, from, to),
    ...by("settlement/fees.daily.test.ts", {})
  })),
  ...(
    [
      [
        "what the sponsor must keep is spent",
        "account.balanceStroops - account.reserveStroops - owedStroops",
        "account.balanceStroops - owedStroops"
      ],
      [
        "what open settlements may cost is spent twice",
        "account.reserveStroops - owedStroops",
        "account.reserveStroops"
      ],
      [
        "a sponsor that is not there",
        "if (status.account === undefined) return",
        "if (status.account === null) return"
      ],
      ["no channel is enough", "if (status.channelsUsable === 0)", "if (status.channelsUsable < 0)"],
      [
        "an empty sponsor is waited for",
        "status.channelsUsable === 0 && spendable(status) >= ceilings.totalStroopsMax",
        "status.channelsUsable === 0"
      ],
      ["the network may ask anything", "return askedStroops > bidCeiling(ceilings, 0n) ?", "return askedStroops < 0n ?"]
    ] as const
  ).map(([name, from, to]) => ({
    name,
    changes: change("kernel/settlement/sponsor/sponsorProblem.ts", from, to),
    ...by("settlement/sponsor/sponsorProblem.test.ts", {})
  })),
  ...(
    [
      ["an empty sponsor settles", settling, "if (Option.isSome(unable)) return busyFor(unable.value)", ""],
      [
        "an empty sponsor verifies",
        "kernel/payment/verifyPayment.ts",
        "if (Option.isSome(unable)) return",
        'if (Option.isNone(unable)) yield* Effect.void\n  else if (scheme.scheme === "") return'
      ],
      [
        "a sponsor that was funded stays empty",
        "kernel/settlement/sponsor/Sponsor.ts",
        "yield* readings.readAgain.pipe(",
        "yield* Effect.void.pipe(",
        // The next ledger heals it too.
        "yield* notes.isFaulty() ? readings.readAgain : readings.refresh",
        "yield* readings.refresh"
      ]
    ] as const
  ).map(([name, file, from, to, andFrom, andTo]) => ({
    name,
    changes: [
      ...change(file, from, to),
      ...(andFrom === undefined || andTo === undefined ? [] : change(file, andFrom, andTo))
    ],
    ...by("settlement/sponsor.daily.test.ts", { TOLLKEEPER_TEST_DATABASES: "pglite" })
  })),
  ...(
    [
      [
        "a network that was reset is waited for",
        channels,
        "if (yield* handleNetworkReset(isCompareDue)) memory.ready = false",
        ""
      ],
      [
        "a running process never sees a reset",
        channels,
        "!memory.ready || sequence < memory.ledgerMost",
        "!memory.ready"
      ],
      [
        "the old network's sponsor transactions hold up the new one's",
        "kernel/settlement/channels/handleNetworkReset.ts",
        "update kernel_sponsor_transactions set ledger = null,",
        "update kernel_sponsor_transactions set ledger = ledger,"
      ]
    ] as const
  ).map(([name, file, from, to]) => ({
    name,
    changes: change(file, from, to),
    ...by("ledger/reset.daily.test.ts", {})
  }))
]
