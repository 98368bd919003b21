// Defects of the money path that payment systems have had, each of which a test must catch. `test/simulation/README.md`
// shows the table.
import type { Mutation } from "./Mutation.ts"

const runs = (count: number, least: number) =>
  `test/simulation/run.ts --runs ${count} --least ${least} --workers 1 --until-broken`.split(" ")
/** On the unchanged tree everything must be come past: a simulation in which nothing happens catches nothing. */
const simulation = { catcher: runs(1_500, 0), unchanged: runs(300, 1) }
const vitest = (...files: ReadonlyArray<string>) => [
  "node_modules/vitest/vitest.mjs",
  "run",
  "--config",
  "test/vitest.config.ts",
  ...files
]
const twin = {
  catcher: vitest("test/simulation/twin.daily.test.ts"),
  environment: { TOLLKEEPER_TEST_DATABASES: "postgres" }
}
const storeTests = {
  catcher: vitest("test/kernel/settlement/store/SqlSettlements.test.ts"),
  environment: { TOLLKEEPER_TEST_DATABASES: "postgres" }
}
const fast = (file: string) => ({ catcher: vitest(`test/kernel/${file}`), environment: {} })
const audits = fast("audit/compareBooks.daily.test.ts")
const besideTests = {
  catcher: vitest("test/kernel/settlement/besideVersion01.test.ts"),
  environment: { TOLLKEEPER_TEST_DATABASES: "postgres" }
}
const sweepTests = {
  catcher: vitest("test/kernel/settlement/store/sweepEnded.test.ts"),
  environment: { TOLLKEEPER_TEST_DATABASES: "postgres" }
}
const replicaTests = {
  catcher: vitest("test/kernel/database/replica.daily.test.ts"),
  environment: { TOLLKEEPER_TEST_DATABASES: "postgres" }
}
const scanTests = fast("ledger/scanLedgers.test.ts")
const followerTests = fast("settlement/follower.test.ts")
const driveTests = fast("settlement/state/planSubmission.test.ts")
const adoptTests = fast("settlement/follower/adopt.test.ts")
const decideTests = { catcher: vitest("test/kernel/settlement/state/decide.test.ts"), environment: {} }
const epochTests = {
  catcher: vitest("test/kernel/facts/FactsEpoch.test.ts"),
  environment: { TOLLKEEPER_TEST_DATABASES: "postgres" }
}
const facts = {
  catcher: vitest("test/kernel/facts/Facts.test.ts"),
  environment: { TOLLKEEPER_TEST_DATABASES: "postgres" }
}

const settlements = "kernel/settlement/store/SqlSettlements.ts"
const noting = "kernel/settlement/store/batchSentNotes.ts"
const finding = "kernel/settlement/store/batchFinds.ts"
const ending = "kernel/settlement/store/batchOutcomes.ts"
const bearing = "kernel/settlement/store/batchRecords.ts"
const deciding = "kernel/settlement/state/decide.ts"
const evidence = "kernel/settlement/follower/gatherEvidence.ts"
const recording = "kernel/payment/settle/recordSettlement.ts"
const waiting = "kernel/payment/settle/waitForOutcome.ts"
const knowing = "kernel/payment/settle/existing.ts"
const store = "kernel/settlement/channels/ChannelStore.ts"
const besideVersion01 = "migrations/kernel/0015_beside_version_01.sql"
const schema = "migrations/kernel/0002_settlement.sql"

export const mutations: ReadonlyArray<Mutation> = [
  {
    name: "the journal begins no epoch when its database is served anew",
    changes: [{ file: "kernel/facts/FactsEpoch.ts", from: "where ${sql.literal(isServedAnew)}", to: "where false" }],
    ...epochTests
  },
  {
    name: "a journal's rows that were restored in place begin no epoch",
    changes: [{ file: "migrations/kernel/0025_restored_in_place.sql", from: ", pg_relation_filenode(epochs)", to: "" }],
    ...epochTests
  },
  {
    name: "an end below what was read begins no epoch",
    changes: [{ file: "kernel/facts/Facts.ts", from: "epoch === seen.epoch && end < seen.position", to: "false" }],
    ...epochTests
  },
  {
    name: "a cursor of another epoch resumes where it stopped",
    changes: [
      { file: "kernel/facts/FactsEpoch.ts", from: "where epoch <> ${of}", to: "where false and epoch <> ${of}" }
    ],
    ...epochTests
  },
  {
    name: "a cursor of an epoch that is not known resumes at the next one",
    changes: [
      {
        file: "kernel/facts/FactsEpoch.ts",
        from: "where epoch <> ${of}\n    and epoch >= coalesce((select max(epoch) from kernel_journal_epochs where epoch <= ${of}), 0)",
        to: "where epoch > ${of}"
      }
    ],
    ...epochTests
  },
  {
    name: "streams do not say that the journal went back",
    changes: [
      { file: "kernel/payment/http/EventStreams.ts", from: "if (page.rewoundTo !== undefined)", to: "if (pageMax < 0)" }
    ],
    ...simulation
  },
  {
    name: "a page of facts without settlements is taken for the end",
    changes: [
      {
        file: "kernel/settlement/operators/SettlementEvents.ts",
        from: "isEnd: facts.length < limit",
        to: "isEnd: events.length < limit"
      }
    ],
    ...epochTests
  },
  {
    name: "a mark of another epoch is believed",
    changes: [{ file: "kernel/facts/Facts.ts", from: "since.epoch === epoch && ", to: "" }],
    ...epochTests
  },
  {
    name: "streams sleep on when the journal went back",
    changes: [
      { file: "kernel/settlement/operators/SettlementEvents.ts", from: "from.epoch !== now.epoch || ", to: "" }
    ],
    ...epochTests
  },
  {
    name: "channels are leased while the database is served anew",
    changes: [
      {
        file: "kernel/settlement/channels/ChannelStore.ts",
        from: "and not (select ${sql.literal(isServedAnew)})",
        to: ""
      }
    ],
    ...storeTests
  },
  {
    name: "distrusted numbers are leased",
    changes: [
      {
        file: "kernel/settlement/channels/ChannelStore.ts",
        from: "and settlement is null and not reread",
        to: "and settlement is null"
      }
    ],
    ...storeTests
  },
  {
    name: "numbers are distrusted again and again in one ledger",
    changes: [
      { file: "kernel/settlement/channels/ChannelStore.ts", from: "if (ledger === distrustedIn) return", to: "" }
    ],
    ...storeTests
  },
  {
    name: "numbers of a network that was reset are believed",
    changes: [
      {
        file: "kernel/settlement/channels/ChannelStore.ts",
        from: "ledger === distrustedIn",
        to: "ledger <= distrustedIn"
      }
    ],
    ...storeTests
  },
  {
    name: "numbers count as distrusted before that is written",
    changes: [
      {
        file: "kernel/settlement/channels/ChannelStore.ts",
        from: "if (ledger === distrustedIn) return\n",
        to: "if (ledger === distrustedIn) return\n    distrustedIn = ledger\n"
      }
    ],
    ...storeTests
  },
  {
    name: "an answer to a lost attempt is noted of another",
    changes: [{ file: noting, from: "and t.outer_hash in ('', a.outer_hash)", to: "" }],
    ...storeTests
  },
  {
    name: "a settlement is built again by a lease that was lost",
    changes: [
      {
        file: "kernel/settlement/store/SqlSettlements.ts",
        from: "where address = ${lease.address} and fence = ${lease.fence}::int8 and settlement is null and not exists",
        to: "where address = ${lease.address} and settlement is null and not exists"
      }
    ],
    ...storeTests
  },
  {
    name: "a settlement that holds a channel is built again",
    changes: [
      {
        file: "kernel/settlement/store/SqlSettlements.ts",
        from: "and not exists (select 1 from kernel_channels held where held.settlement = ${id})",
        to: ""
      }
    ],
    ...storeTests
  },
  {
    name: "a stale decision takes the channel that a settlement was built again on",
    changes: [
      {
        file: "kernel/settlement/store/SqlSettlements.ts",
        from: "and exists (select 1 from kernel_settlements where id = ${id} and attempt_count = ${attemptsKnown})",
        to: ""
      }
    ],
    ...storeTests
  },
  {
    name: "attempts that can never land are followed",
    changes: [
      {
        file: "kernel/settlement/store/SqlSettlements.ts",
        from: "and number > (select attempts_void from kernel_settlements as s where s.id = a.settlement)",
        to: ""
      }
    ],
    ...storeTests
  },
  {
    name: "a former hash is found no more",
    changes: [
      {
        file: "kernel/settlement/store/SqlSettlements.ts",
        from: "or id in (select settlement from kernel_rebuilds where inner_hash = ${by.hash})",
        to: ""
      }
    ],
    ...storeTests
  },
  {
    name: "built again although a node took it",
    changes: [
      { file: "kernel/settlement/state/decide.ts", from: 'kind === "payment" && !taken', to: 'kind === "payment"' }
    ],
    ...decideTests
  },
  {
    name: "built again without a word about its number",
    changes: [
      { file: "kernel/settlement/state/decide.ts", from: '&& attempts.at(-1)?.sentCode === "txBadSeq"', to: "" }
    ],
    ...decideTests
  },
  {
    name: "built again when the authorization is nearly dead",
    changes: [
      { file: "kernel/settlement/state/decide.ts", from: "options.canRebuild && isTime", to: "options.canRebuild" }
    ],
    ...decideTests
  },
  {
    name: "a settlement is built again for ever",
    changes: [
      {
        file: "kernel/settlement/follower/applyDecision.ts",
        from: " && record.attemptCount <= attemptsForRebuildMax",
        to: ""
      }
    ],
    ...followerTests
  },
  {
    name: "an adopted success goes to any caller",
    changes: [
      {
        file: "kernel/settlement/follower/adopt.ts",
        from: "if (yield* isOwner(adopted, inner)) return",
        to: "if (isOwner) return"
      }
    ],
    ...adoptTests
  },
  {
    name: "a tag says nothing of the terms",
    changes: [{ file: "kernel/settlement/ownership.ts", from: "${owner}\\n${fingerprint}", to: "${owner}" }],
    ...adoptTests
  },
  {
    name: "what ended has its age from its record alone",
    changes: [{ file: "kernel/settlement/store/sweepEnded.ts", from: "and s.resolved_at < ${before} ", to: "" }],
    ...sweepTests
  },
  {
    name: "an authorization is found on another network",
    changes: [
      {
        file: "kernel/settlement/store/SqlSettlements.ts",
        from: "where (${key}::text is not null and network = ${query.network} and scheme",
        to: "where (${key}::text is not null and scheme"
      }
    ],
    ...storeTests
  },
  {
    name: "an authorization is found on another network, of those that are asked for together",
    changes: [
      {
        file: "kernel/settlement/store/batchFinds.ts",
        from: "where network = of_network and scheme",
        to: "where scheme"
      }
    ],
    ...storeTests
  },
  {
    name: "a place is given back only while its principal has others",
    changes: [
      {
        file: "kernel/settlement/channels/AdmissionControl.ts",
        from: "this.#placesInAll -= 1",
        to: "if (own > 1) this.#placesInAll -= 1"
      }
    ],
    ...fast("settlement/channels/AdmissionControl.test.ts")
  },
  {
    name: "a payment in flight while the audit read is a finding",
    changes: [
      {
        file: "kernel/audit/compareBooks.ts",
        from: "      : still.has(keyOf(found))",
        to: "      : true"
      }
    ],
    ...audits
  },
  {
    name: "a landing that no later record explains is left out by the audit",
    changes: [
      {
        file: "kernel/audit/compareBooks.ts",
        from: "      : still.has(keyOf(found))",
        to: "      : false"
      }
    ],
    ...audits
  },
  {
    name: "a channel in use while the audit read is a finding",
    changes: [
      {
        file: "kernel/audit/compareBooks.ts",
        from: "? !isUsedSince(found.subject, claims, later, view)",
        to: "? true"
      }
    ],
    ...audits
  },
  {
    name: "a number that no settlement used is left out by the audit",
    changes: [
      {
        file: "kernel/audit/compareBooks.ts",
        from: "if (!used.has(number)) return false",
        to: "used.has(number)"
      }
    ],
    ...audits
  },
  {
    name: "a number beyond the ledger's is left out by the audit",
    changes: [
      {
        file: "kernel/audit/compareBooks.ts",
        from: " || onLedger < recorded) return false",
        to: ") return false"
      }
    ],
    ...audits
  },
  {
    name: "a finding that no traffic explains is read again",
    changes: [
      {
        file: "kernel/audit/compareBooks.ts",
        from: "if (!maybeInFlight.has(found.rule)) return true",
        to: ""
      }
    ],
    ...audits
  },
  {
    name: "an endpoint behind the records is not read again",
    changes: [
      {
        file: "kernel/audit/compareBooks.ts",
        from: "until: ({ toLedger }) => toLedger >= newest",
        to: "until: () => newest >= 0"
      }
    ],
    ...audits
  },
  {
    name: "an endpoint behind the records is believed",
    changes: [
      {
        file: "kernel/audit/compareBooks.ts",
        from: "times: againMax,",
        to: "times: 1,"
      }
    ],
    ...audits
  },
  {
    name: "the auditor knows no end by a lost transaction",
    changes: [
      {
        file: "kernel/audit/compare.ts",
        from: "if (ending === undefined || ending.inner_hash === entry.innerHash) wrong",
        to: "wrong"
      }
    ],
    ...fast("audit/compare.test.ts")
  },
  {
    name: "a lost end is charged anything",
    changes: [
      {
        file: "kernel/audit/compare.ts",
        from: "if (charged !== taken && charged !== taken + reserved)",
        to: "if (charged === null)"
      }
    ],
    ...fast("audit/compare.test.ts")
  },
  {
    name: "another payer's payment found by its identifier, of those that are asked for together",
    changes: [{ file: finding, from: " and payer = of_payer", to: "" }],
    ...storeTests
  },
  {
    name: "an answer goes to another caller of the batch",
    changes: [{ file: finding, from: "byQuestion.get(at)", to: "byQuestion.get(queries.length - 1 - at)" }],
    ...storeTests
  },
  {
    name: "an open settlement taken for an ended one",
    changes: [
      {
        file: settlements,
        from: "where id = any(${ids}::uuid[]) and state not in ('prepared', 'submitted')`",
        to: "where id = any(${ids}::uuid[])`"
      }
    ],
    ...twin
  },
  {
    name: "two claims of one success granted by one statement",
    changes: [
      { file: noting, from: "keyOf: ({ id }: Claim) => id,", to: "keyOf: ({ id }: Claim) => id + Math.random()," }
    ],
    ...storeTests
  },
  {
    name: "two answers to one attempt noted by one statement",
    changes: [
      {
        file: noting,
        from: "keyOf: ({ id, number }: Noting) => `${id} ${number}`,",
        to: "keyOf: ({ id, number }: Noting) => `${id} ${number} ${Math.random()}`,"
      }
    ],
    ...storeTests
  },
  {
    name: "a statement for each payment of a moment",
    changes: [{ file: noting, from: "const callsMax = 100", to: "const callsMax = 1" }],
    ...storeTests
  },
  {
    name: "calls of one key in one statement",
    changes: [
      {
        file: "kernel/database/batched.ts",
        from: "next.size < callsMax && !next.has(key)) next.set(key, call)",
        to: "next.size < callsMax) next.set(`${key} ${next.size}`, call)"
      }
    ],
    ...fast("database/batched.test.ts")
  },
  {
    name: "rows of many are met in any order",
    changes: [
      {
        file: "kernel/database/batched.ts",
        from: "[...next].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(",
        to: "[...next].map("
      }
    ],
    ...fast("database/batched.test.ts")
  },
  {
    name: "a call is made for an interrupted caller",
    changes: [{ file: "kernel/database/batched.ts", from: "if (at >= 0) waiting", to: "if (at >= 9) waiting" }],
    ...fast("database/batched.test.ts")
  },
  {
    name: "calls left without an answer when their statements end",
    changes: [
      {
        file: "kernel/database/batched.ts",
        from: "if (Exit.isSuccess(exit)) return",
        to: "if (Exit.isFailure(exit)) return"
      }
    ],
    ...fast("database/batched.test.ts")
  },
  {
    name: "submit before record",
    changes: [
      {
        file: recording,
        from: "  const recorded = yield* settlements\n",
        to: "  yield* (yield* LedgerRpc).send(attempt.envelope, attempt.outerHash)\n  const recorded = yield* settlements\n"
      },
      {
        file: recording,
        from: "import { LedgerClock, type LedgerTime } from",
        to: 'import { LedgerRpc } from "../../ledger/LedgerRpc.ts"\nimport { LedgerClock, type LedgerTime } from'
      }
    ],
    ...simulation
  },
  {
    name: "no unique index on the authorization",
    changes: [
      {
        file: schema,
        from: "constraint kernel_settlements_authorization unique (network, scheme, authorization_key)",
        to: "constraint kernel_settlements_authorization check (true)"
      }
    ],
    ...twin
  },
  {
    name: "no unique index on the identifier",
    changes: [
      {
        file: "migrations/kernel/0007_principals.sql",
        from: "create unique index kernel_settlements_identifier",
        to: "create index kernel_settlements_identifier"
      }
    ],
    ...twin
  },
  {
    name: "the end by a replica of version 0.1 is left to the owner's budget",
    changes: [
      { file: besideVersion01, from: "and b.principal = new.budget_principal", to: "and b.principal = new.principal" }
    ],
    ...besideTests
  },
  {
    name: "every keyless end is charged again at its commit",
    changes: [{ file: besideVersion01, from: "is distinct from 'in progress'", to: "is not null or true" }],
    ...besideTests
  },
  {
    name: "a row that was changed in a savepoint is taken for another's",
    changes: [
      {
        file: besideVersion01,
        from: `and pg_xact_status((mine - 2147483648
          + mod(mod(b.xmin::text::bigint - mine, 4294967296) + 6442450944, 4294967296))::text::xid8)
          is distinct from 'in progress'`,
        to: "and b.xmin <> pg_current_xact_id()::xid"
      }
    ],
    ...besideTests
  },
  {
    name: "a keyless payment of version 0.1 belongs to its address",
    changes: [{ file: besideVersion01, from: "new.principal := 'anonymous'", to: "new.principal := new.principal" }],
    ...besideTests
  },
  {
    name: "an attempt of version 0.1 is not known as taken",
    changes: [{ file: besideVersion01, from: "new.taken := true", to: "new.taken := false" }],
    ...besideTests
  },
  {
    name: "no fence check",
    changes: [
      {
        file: settlements,
        from: "and fence = ${channel.fence}::int8 and settlement is null",
        to: "and settlement is null"
      }
    ],
    ...twin
  },
  {
    name: "a lease checked without the lock of its row",
    changes: [{ file: settlements, from: "from permit) for update),", to: "from permit))," }],
    ...storeTests
  },
  {
    name: "a hold taken from another settlement",
    changes: [
      {
        file: settlements,
        from: "and fence = ${channel.fence}::int8 and settlement is null",
        to: "and fence = ${channel.fence}::int8"
      }
    ],
    ...twin
  },
  {
    name: "ERROR means failed",
    changes: [
      {
        file: deciding,
        from: "return planSubmission(settlement,",
        to: `if (settlement.attempts.at(-1)?.sentStatus === "Error")
    return end(Ending.overtakenUnspent(settlement, seen.latestLedger))
  return planSubmission(settlement,`
      }
    ],
    ...simulation
  },
  {
    name: "timeout means failed",
    changes: [
      {
        file: waiting,
        from: "if (Option.isNone(record)) return pending",
        to: 'if (Option.isNone(record)) return { _tag: "Failed", refusal: { _tag: "Refusal", reason: "settle_ledger_transaction_failed", message: "it took too long", payer: Option.none() }, transaction: Option.none() } as SettleAnswer'
      }
    ],
    ...simulation
  },
  {
    name: "NOT_FOUND means expired without the bound",
    changes: [
      {
        file: deciding,
        from: "if (seen.latestLedger >= settlement.authorizationExpiresLedger) return boundPassed",
        to: "if (seen.latestLedger > settlement.recordedLedger + 1) return boundPassed"
      },
      {
        file: deciding,
        from: "if (snapshot === undefined || snapshot.ledger < settlement.authorizationExpiresLedger) return",
        to: "if (snapshot === undefined) return"
      }
    ],
    ...simulation
  },
  {
    name: "an absent nonce read after the expiry is taken for unspent",
    changes: [
      {
        file: deciding,
        from: 'nonce === "unknown" || isUnspent(settlement, snapshot)',
        to: 'typeof nonce !== "number"'
      }
    ],
    ...decideTests
  },
  {
    name: "a lost record is not waited for where ledgers are read in part",
    changes: [{ file: deciding, from: "isSearched || late >= patience", to: "true" }],
    ...decideTests
  },
  {
    name: "an operator gives away what another transaction ended",
    changes: [{ file: "kernel/settlement/operators/OperatorActions.ts", from: " or ended_by = ${text}", to: "" }],
    catcher: vitest("test/kernel/settlement/operators/OperatorActions.daily.test.ts"),
    environment: { TOLLKEEPER_TEST_DATABASES: "pglite" }
  },
  {
    name: "the bound is checked against the local clock",
    changes: [
      {
        file: evidence,
        from: "{ ...shown, ledger: answer.latestLedger }",
        to: "{ ...shown, ledger: record.recordedLedger + Math.floor(((yield* Effect.clockWith((clock) => clock.currentTimeMillis)) - record.recordedAt.getTime()) / 5_000) }"
      }
    ],
    ...simulation
  },
  {
    name: "an old snapshot is taken for a new one",
    changes: [
      {
        file: evidence,
        from: "{ ...shown, ledger: answer.latestLedger }",
        to: "{ ...shown, ledger: Math.max(answer.latestLedger, (yield* (yield* LedgerClock).now).sequence) }"
      }
    ],
    ...simulation
  },
  {
    name: "a partial scan of ledgers is taken for a complete one",
    changes: [
      {
        file: deciding,
        from: "const isWhole = search.fromLedger <= fromLedger && search.toLedger >= toLedger",
        to: "const isWhole = search.fromLedger <= fromLedger"
      }
    ],
    ...decideTests
  },
  {
    name: "lease expiry frees an in-flight channel",
    changes: [
      {
        file: store,
        from: "${leasable()} and settlement is null and not reread",
        to: "${leasable()} and not reread"
      }
    ],
    ...twin
  },
  {
    name: "the sequence is reread while a transaction is pending",
    changes: [
      {
        file: store,
        from: "where address = ${address} and state in ('wanted', 'ready') and settlement is null and (sequence is null or reread) and (leased_until is null or leased_until < clock_timestamp()) and sequence_ledger <= ${asOfLedger}",
        to: "where address = ${address} and sequence_ledger <= ${asOfLedger}"
      }
    ],
    ...twin
  },
  {
    name: "an expired settlement uses up its sequence number",
    changes: [
      {
        file: "kernel/settlement/state/outcomes.ts",
        from: "sequence === settlement.channelSequence - 1n ? false : undefined",
        to: "sequence === settlement.channelSequence - 1n ? true : undefined"
      }
    ],
    catcher: vitest("test/kernel/settlement/state/decide.test.ts")
  },
  {
    name: "the reservation is kept on loss",
    changes: [
      {
        file: settlements,
        from: '    spreadOf(id),\n    "leased"\n',
        to: '    spreadOf(id),\n    "standing"\n'
      }
    ],
    ...twin
  },
  {
    name: "the estimate is committed instead of the charge",
    changes: [
      {
        file: ending,
        from: "channel_sequence, fee_charged_stroops as charged",
        to: "channel_sequence, budget_stroops as charged"
      }
    ],
    ...twin
  },
  {
    name: "any clash is taken for a settlement that is known",
    changes: [
      {
        file: settlements,
        from: "isUniqueViolation(error, ...ofOneSettlement),",
        to: "isUniqueViolation(error, ...ofAnother),"
      }
    ],
    ...storeTests
  },
  {
    name: "success is given to two concurrent callers",
    changes: [
      {
        file: waiting,
        from: "(yield* settlements.claimDelivery(id, principal.owner))",
        to: "true"
      }
    ],
    ...simulation
  },
  {
    name: "success is given to a late twin",
    changes: [
      {
        file: knowing,
        from: 'return late && answer._tag === "Settled"',
        to: 'return answer._tag === "Pending" && answer._tag === "Settled"'
      }
    ],
    ...simulation
  },
  {
    name: "the fact cursor overtakes a late commit",
    changes: [
      {
        file: "kernel/facts/Facts.ts",
        from: "t.top + row_number() over (order by w.id) as position",
        to: "w.id as position"
      }
    ],
    ...facts
  },
  {
    name: "two replicas assign positions concurrently",
    changes: [
      { file: "kernel/facts/Facts.ts", from: "select pg_advisory_xact_lock(724402404)", to: "select 724402404" }
    ],
    ...facts
  },
  {
    name: "new facts sort below a restored cursor",
    changes: [
      {
        file: "kernel/facts/Facts.ts",
        from: "coalesce((select max(position) from kernel_fact_cursors), 0)",
        to: "0"
      }
    ],
    ...facts
  },
  {
    name: "an absence far ahead of the ledger counts",
    changes: [
      {
        file: "kernel/ledger/withinLedgerBound.ts",
        from: "Math.min(latestLedger, provenLedger(",
        to: "Math.max(latestLedger, provenLedger("
      }
    ],
    catcher: vitest("test/kernel/ledger/withinLedgerBound.test.ts")
  },
  {
    name: "a snapshot far ahead of the ledger counts",
    changes: [
      {
        file: "kernel/settlement/follower/gatherEvidence.ts",
        from: "if (!(yield* isReached(clock, answer.latestLedger))) continue",
        to: "yield* isReached(clock, answer.latestLedger)"
      }
    ],
    ...simulation
  },
  {
    name: "no bid in the budget",
    changes: [
      {
        file: "kernel/payment/settle/recordSettlement.ts",
        from: "budgetStroops: verified.resourceFeeStroops + mostBid",
        to: "budgetStroops: verified.resourceFeeStroops + 0n * mostBid"
      }
    ],
    ...simulation
  },
  {
    name: "no resource fee in the budget",
    changes: [
      {
        file: "kernel/payment/settle/recordSettlement.ts",
        from: "budgetStroops: verified.resourceFeeStroops + mostBid",
        to: "budgetStroops: mostBid"
      }
    ],
    ...simulation
  },
  {
    name: "an envelope that outlives its authorization",
    changes: [
      {
        file: "kernel/payment/settle/recordSettlement.ts",
        from: "ledgerMax: verified.authorizationExpiresLedger + 1",
        to: "ledgerMax: verified.authorizationExpiresLedger + 2"
      }
    ],
    ...simulation
  },
  {
    name: "an envelope that ends by this machine's clock",
    changes: [
      {
        file: "kernel/payment/settle/recordSettlement.ts",
        from: "timeMax: BigInt(ledger.closedAtSeconds + timeNetSeconds)",
        to: "timeMax: BigInt(Math.floor(settling.startedAt.at / 1_000) + 3_600)"
      }
    ],
    ...simulation
  },
  {
    name: "one channel's number used twice",
    changes: [
      {
        file: "kernel/payment/settle/recordSettlement.ts",
        from: "sequence: lease.sequence,",
        to: "sequence: lease.sequence - (lease.sequence % 2n),"
      }
    ],
    ...simulation
  },
  {
    name: "a scan of ledgers that does not compare hashes",
    changes: [
      {
        file: "kernel/ledger/makeLedgerRpc.ts",
        from: "readIncluded(hashing, one, ({ outerHash }) => outerHash === one.txHash)",
        to: "readIncluded(hashing, one, () => true)"
      }
    ],
    ...scanTests
  },
  {
    name: "a full page counts its last ledger as read",
    changes: [
      {
        file: "kernel/ledger/makeLedgerRpc.ts",
        from: "isFull && last !== undefined ? last.ledger - 1 :",
        to: "isFull && last !== undefined ? last.ledger :"
      }
    ],
    ...scanTests
  },
  {
    name: "a crowded ledger scanned for a few settlements",
    changes: [
      {
        file: "kernel/settlement/follower/scanLedgers.ts",
        from: "ledgers <= triedLedgersMax : expected <= perQuestion * records.length",
        to: "ledgers <= triedLedgersMax : true"
      }
    ],
    ...fast("settlement/follower/scanLedgers.test.ts")
  },
  {
    name: "a scan that fails is tried with each ledger",
    changes: [
      { file: "kernel/settlement/follower/scanLedgers.ts", from: "density.note(Infinity, 1,", to: "density.note(0, 1," }
    ],
    ...fast("settlement/follower/scanLedgers.test.ts")
  },
  {
    name: "a scan that believes in any hash",
    changes: [
      {
        file: "kernel/settlement/follower/scanLedgers.ts",
        from: "attempts.get(executed.outerHash) ?? attempts.get(executed.innerHash)",
        to: "[...attempts.values()][0]"
      }
    ],
    ...followerTests
  },
  {
    name: "an unsent attempt is never sent",
    changes: [
      {
        file: deciding,
        from: "return now.millisSinceRecord >= unsentAfterMillis || now.sequence > ofRecord + 1",
        to: "return now.millisSinceRecord < unsentAfterMillis && unsentAfterMillis === 0"
      }
    ],
    ...decideTests
  },
  {
    name: "a record of a ledger that is yet to come waits for it",
    changes: [{ file: deciding, from: "if (ofRecord > now.sequence + queueLedgers) return true", to: "" }],
    ...decideTests
  },
  {
    name: "the first attempt is sent again instead of the newest",
    changes: [
      {
        file: "kernel/settlement/state/planSubmission.ts",
        from: 'attempts.findLast(({ kind }) => kind === "payment")',
        to: 'attempts.find(({ kind }) => kind === "payment")'
      }
    ],
    ...driveTests
  },
  {
    name: "a send although the store added no attempt",
    changes: [
      {
        file: "kernel/settlement/follower/applyDecision.ts",
        from: "if (number !== undefined) yield* submitAttempt(record.id, { ...attempt, number })",
        to: "yield* submitAttempt(record.id, { ...attempt, number: number ?? 1 })"
      }
    ],
    ...followerTests
  },
  {
    name: "an attempt added without knowledge of the newest",
    changes: [
      {
        file: settlements,
        from: "and state in ('prepared', 'submitted') and attempt_count = ${attemptsKnown} returning 1",
        to: "and state in ('prepared', 'submitted') returning 1"
      }
    ],
    ...twin
  },
  {
    name: "settlements recorded in one moment, though one of their leases is lost",
    changes: [{ file: bearing, from: " having count(*) = ${settlements.length}::int", to: "" }],
    ...storeTests
  },
  {
    name: "settlements recorded in one moment on leases that others hold",
    changes: [{ file: bearing, from: " and c.fence = leased_fence", to: "" }],
    ...storeTests
  },
  {
    name: "settlements recorded in one moment open more than there may be",
    changes: [{ file: bearing, from: " and (select may_open from permit)", to: "" }],
    ...storeTests
  },
  {
    name: "settlements recorded in one moment reserve for one of them",
    changes: [
      {
        file: bearing,
        from: "settlements.reduce((sum, { budgetStroops }) => sum + budgetStroops, 0n),",
        to: "first!.budgetStroops,"
      }
    ],
    ...storeTests
  },
  {
    name: "settlements recorded in one batch share one error",
    changes: [
      {
        file: bearing,
        from: 'areBorn ? Effect.succeed(group.map((): Answer => Exit.succeed({ _tag: "Recorded" }))) : alone',
        to: 'Effect.succeed(group.map((): Answer => Exit.succeed({ _tag: areBorn ? "Recorded" : "FenceLost" })))'
      }
    ],
    ...storeTests
  },
  {
    name: "settlements that end in one batch share one error",
    changes: [{ file: ending, from: "Effect.forEach(ends, resolveOne)", to: "Effect.failCause(cause)" }],
    ...storeTests
  },
  {
    name: "of settlements that end in one moment one is charged",
    changes: [
      {
        file: "kernel/budget/budgetStatements.ts",
        from: "sum(budget_stroops)::int8 as reserved, sum(charged)::int8 as charged\n      from ${ended} group by budget_day, budget_of",
        to: "max(budget_stroops) as reserved, max(charged) as charged\n      from ${ended} group by budget_day, budget_of"
      }
    ],
    ...storeTests
  },
  {
    name: "an end that gives no channel back frees it",
    changes: [{ file: ending, from: "where g.gives_back and c.address", to: "where c.address" }],
    ...storeTests
  },
  {
    name: "an end decided without the newest attempt",
    changes: [
      {
        file: ending,
        from: "and (attempts_known is null or attempt_count = attempts_known)",
        to: "and (attempts_known is null or true)"
      }
    ],
    ...twin
  },
  {
    name: "the end frees a channel of another settlement",
    changes: [
      {
        file: ending,
        from: "where g.gives_back and c.address = e.channel and c.settlement = g.end_of",
        to: "where g.gives_back and c.address = e.channel"
      }
    ],
    ...storeTests
  },
  {
    name: "a channel freed early keeps its fence",
    changes: [
      {
        file: settlements,
        from: "greatest(sequence_ledger, ${ledger}::int8), fence = fence + 1",
        to: "greatest(sequence_ledger, ${ledger}::int8)"
      }
    ],
    ...twin
  },
  {
    name: "one transaction ends two settlements",
    changes: [
      {
        file: "migrations/kernel/0008_endings.sql",
        from: "create unique index kernel_settlements_ended_by",
        to: "create index kernel_settlements_ended_by"
      }
    ],
    ...storeTests
  },
  {
    name: "a later refusal makes one forget that a node took it",
    changes: [{ file: noting, from: "taken = a.taken or t.taken", to: "taken = t.taken" }],
    ...storeTests
  },
  {
    name: "the reservation is given back for what may have landed",
    changes: [
      {
        file: ending,
        from: "case when fee_unknown then budget_stroops else 0 end",
        to: "case when fee_unknown then 0 else 0 end"
      }
    ],
    ...storeTests
  },
  {
    name: "insufficient fee is cancelled",
    changes: [
      {
        file: "kernel/settlement/state/planSubmission.ts",
        from: '  "txMalformed",',
        to: '  "txMalformed",\n  "txInsufficientFee",'
      }
    ],
    ...driveTests
  },
  {
    name: "a rotated sponsor signs for what was before it",
    changes: [
      {
        file: "kernel/settlement/follower/applyDecision.ts",
        from: "record.sponsor === signer.sponsor && signer.isOurs(record.channel)",
        to: "signer.isOurs(record.channel)"
      }
    ],
    ...followerTests
  },
  {
    name: "a defect in one settlement ends the turn",
    changes: [
      {
        file: "kernel/settlement/follower/reconcileSettlements.ts",
        from: "const reported = Cause.hasDies(cause)",
        to: `if (Cause.hasDies(cause)) return Effect.failCause(cause as Cause.Cause<never>)
    const reported = Cause.hasDies(cause)`
      }
    ],
    ...followerTests
  },
  {
    name: "a spent nonce is looked up for each expiry",
    changes: [
      {
        file: "kernel/settlement/follower/adopt.ts",
        from: "${request.network} ${nonce.address} ${nonce.nonce}",
        to: "${request.network} ${request.authorizationKey}"
      }
    ],
    ...adoptTests
  },
  {
    name: "a transaction that has ended another settlement answered as this payment",
    changes: [
      {
        file: "kernel/settlement/follower/adopt.ts",
        from: 'return stored === "TransactionTaken" ? ({ _tag: "Elsewhere", ...by } as Adopted) : answer',
        to: "return answer"
      }
    ],
    ...adoptTests
  },
  {
    name: "the last ledger of a life taken for one that an entry names",
    changes: [
      {
        file: "kernel/settlement/follower/adopt.ts",
        from: "next <= toLedger || isNamed",
        to: "next <= toLedger || fromLedger === toLedger"
      }
    ],
    ...adoptTests
  },
  {
    name: "a lost record is compared at the maximum that is verified",
    changes: [{ file: "kernel/settlement/follower/adopt.ts", from: "moved < request.amount ?", to: "moved < 0n ?" }],
    ...adoptTests
  },
  {
    name: "a payment from before a rotation is another party's",
    changes: [{ file: evidence, from: ", ...signer.formerChannels, record.channel", to: ", record.channel" }],
    ...followerTests
  },
  {
    name: "a payment of a former sponsor is another party's",
    changes: [{ file: evidence, from: "[...signer.sponsors, record.sponsor]", to: "[signer.sponsor]" }],
    ...followerTests
  },
  {
    name: "a lost record on a channel of a rotation before",
    changes: [{ file: "kernel/settlement/follower/adopt.ts", from: ", ...signer.formerChannels]", to: "]" }],
    ...adoptTests
  },
  {
    name: "an expired authorization called unused while its entry is gone",
    changes: [
      {
        file: "kernel/settlement/follower/whereUsed.ts",
        from: "if (latestLedger === expiresLedger && entryLedger === undefined)",
        to: "if (entryLedger === undefined)"
      }
    ],
    ...adoptTests
  },
  {
    name: "a part of an authorization's life taken for all of it",
    changes: [
      {
        file: "kernel/settlement/follower/whereUsed.ts",
        from: "isWhole: fromLedger === firstLedger",
        to: "isWhole: true"
      }
    ],
    ...adoptTests
  },
  {
    name: "an entry after the expiry taken for the authorization's",
    changes: [
      {
        file: "kernel/settlement/follower/whereUsed.ts",
        from: "entryLedger !== undefined && entryLedger <= expiresLedger",
        to: "entryLedger !== undefined"
      }
    ],
    ...adoptTests
  },
  {
    name: "an expired authorization called unused by a node that is behind",
    changes: [
      {
        file: "kernel/settlement/follower/whereUsed.ts",
        from: 'if (latestLedger < expiresLedger) return { _tag: latestLedger >= endedLedger ? "Unused" : "Unknown" }',
        to: ""
      }
    ],
    ...adoptTests
  },
  {
    name: "a window in seconds that never ends",
    changes: [
      {
        file: "kernel/settlement/follower/whereUsed.ts",
        from: 'latestLedger >= endedLedger ? "Unused" : "Unknown"',
        to: '"Unknown"'
      }
    ],
    ...fast("settlement/follower/whereUsed.test.ts")
  },
  {
    name: "an authorization that may still be used is cached as such",
    changes: [{ file: "kernel/settlement/follower/adopt.ts", from: '(use === "Alive" ? undefined : ', to: "(" }],
    ...adoptTests
  },
  {
    name: "one life's unused nonce taken for another's",
    changes: [
      {
        file: "kernel/settlement/follower/adopt.ts",
        from: "expired === undefined ? spent : `${spent} ${expired.expiresLedger}`",
        to: "spent"
      }
    ],
    ...adoptTests
  },
  {
    name: "an attempt whose answer was lost was not taken",
    // The database's trigger for replicas of the former version says the same.
    changes: [
      { file: noting, from: ' || sent.status === "Lost"', to: "" },
      { file: "migrations/kernel/0015_beside_version_01.sql", from: "'Duplicate', 'Lost')", to: "'Duplicate')" }
    ],
    ...storeTests
  },
  {
    name: "records that took too long together are tried alone",
    changes: [{ file: bearing, from: ' || reason._tag === "StatementTimeoutError"', to: "" }],
    ...fast("settlement/store/batchRecords.test.ts")
  },
  {
    name: "one caller's polls crowd out another's",
    changes: [
      { file: "kernel/settlement/follower/adopt.ts", from: "if (mine >= pollsOfPrincipalMax)", to: "if (mine < 0)" }
    ],
    ...adoptTests
  },
  {
    name: "an ended settlement leaves while the ledger might still take its authorization",
    changes: [
      {
        file: "kernel/settlement/store/sweepEnded.ts",
        from: " and s.authorization_expires_ledger < ${sequence}",
        to: " and ${sequence}::bigint > 0"
      }
    ],
    ...sweepTests
  },
  {
    name: "an unresolved settlement is deleted by age",
    changes: [
      {
        file: "kernel/settlement/store/sweepEnded.ts",
        from: "s.state in ('settled', 'failed', 'expired')",
        to: "s.state in ('settled', 'failed', 'expired', 'unresolved')"
      }
    ],
    ...sweepTests
  },
  {
    name: "a replica is read from however far behind it is",
    changes: [{ file: "kernel/database/ReadReplica.ts", from: ": lagMillis > lagMillisMax", to: ": lagMillis < 0" }],
    ...replicaTests
  },
  {
    name: "what a lost replica did not answer is an error",
    changes: [
      {
        file: "kernel/database/ReadReplica.ts",
        from: "return Effect.provideService(effect, ReadTarget, undefined)",
        to: "return Effect.fail(error)"
      }
    ],
    ...replicaTests
  },
  {
    name: "facts leave that a consumer has not read",
    changes: [
      {
        file: "kernel/facts/sweepFacts.ts",
        from: "select coalesce(min(position), 0) from kernel_fact_cursors",
        to: "select coalesce(max(position), 0) from kernel_fact_cursors"
      }
    ],
    ...sweepTests
  },
  ...["failed-is-not-asked-why", "a-used-number-is-foreign"].map((name): Mutation => ({
    name: `explored: ${name}`,
    changes: [
      {
        file: "test/model/worlds.ts",
        from: "export const sound: Product = { decide, readUse }",
        to:
          "export const sound: Product = { get decide() { return defects[" +
          JSON.stringify(name) +
          "]!.decide }, readUse }"
      }
    ],
    catcher: ["test/model/run.ts", "--small"]
  }))
]
