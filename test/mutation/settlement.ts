// Defects of the money path that payment systems have had, each of which a test must catch. `test/simulation/README.md`
// shows the table.
import type { Mutation } from "./Mutation.ts"

const runs = (count: number, least: number) =>
  `test/simulation/run.ts --runs ${count} --least ${least} --workers 1 --until-broken`.split(" ")
/** On the unchanged tree everything must be come past: a simulation in which nothing happens catches nothing. */
const simulation = { catcher: runs(1_500, 0), unchanged: runs(100, 1) }
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
const decideTests = { catcher: vitest("test/kernel/settlement/decide.test.ts"), environment: {} }
const facts = { catcher: vitest("test/kernel/Facts.test.ts"), environment: { TOLLKEEPER_TEST_DATABASES: "postgres" } }

const settlements = "kernel/settlement/SqlSettlements.ts"
const deciding = "kernel/settlement/decide.ts"
const gathering = "kernel/settlement/gatherEvidence.ts"
const recording = "kernel/payment/settle/recordSettlement.ts"
const waiting = "kernel/payment/settle/waitForOutcome.ts"
const knowing = "kernel/payment/settle/known.ts"
const store = "kernel/settlement/channels/ChannelStore.ts"
const schema = "migrations/kernel/0002_settlement.sql"

export const mutations: ReadonlyArray<Mutation> = [
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
    name: "no fence check",
    changes: [
      {
        file: settlements,
        from: "and fence = ${settlement.channel.fence} and settlement is null",
        to: "and settlement is null"
      }
    ],
    ...twin
  },
  {
    name: "a hold taken from another settlement",
    changes: [
      {
        file: settlements,
        from: "and fence = ${settlement.channel.fence} and settlement is null",
        to: "and fence = ${settlement.channel.fence}"
      }
    ],
    ...twin
  },
  {
    name: "ERROR means failed",
    changes: [
      {
        file: deciding,
        from: "return drive(settlement,",
        to: 'if (settlement.attempts.at(-1)?.sentStatus === "Error")\n    return end(Ending.overtakenUnspent(settlement, seen.latestLedger))\n  return drive(settlement,'
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
        from: "if (standing === undefined || standing.ledger < settlement.authorizationExpiresLedger) return",
        to: "if (standing === undefined) return"
      }
    ],
    ...simulation
  },
  {
    name: "the bound is judged by the local clock",
    changes: [
      {
        file: gathering,
        from: "{ ...one, ledger: answer.latestLedger }",
        to: "{ ...one, ledger: record.recordedLedger + Math.floor(((yield* Effect.clockWith((clock) => clock.currentTimeMillis)) - record.recordedAt.getTime()) / 5_000) }"
      }
    ],
    ...simulation
  },
  {
    name: "an old standing is taken for a new one",
    changes: [
      {
        file: gathering,
        from: "{ ...one, ledger: answer.latestLedger }",
        to: "{ ...one, ledger: Math.max(answer.latestLedger, (yield* (yield* LedgerClock).now).sequence) }"
      }
    ],
    ...simulation
  },
  {
    name: "a look through a part of the ledgers is taken for the whole",
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
        from: "and state = 'ready' and sequence is not null and settlement is null\n",
        to: "and state = 'ready' and sequence is not null\n"
      }
    ],
    ...twin
  },
  {
    name: "the sequence is reread while a transaction is pending",
    changes: [
      {
        file: store,
        from: "where address = ${address} and state in ('wanted', 'ready') and settlement is null and sequence is null and sequence_ledger <= ${asOfLedger}",
        to: "where address = ${address} and sequence_ledger <= ${asOfLedger}"
      }
    ],
    ...twin
  },
  {
    name: "an expired settlement uses up its sequence number",
    changes: [
      {
        file: "kernel/settlement/endings.ts",
        from: "sequence === settlement.channelSequence - 1n ? false : undefined",
        to: "sequence === settlement.channelSequence - 1n ? true : undefined"
      }
    ],
    ...simulation
  },
  {
    name: "the reservation is kept on loss",
    changes: [
      {
        file: settlements,
        from: 'if (held.length === 0) return yield* undo({ _tag: "FenceLost" })',
        to: 'if (held.length === 0) return { _tag: "FenceLost" } as RecordAnswer'
      }
    ],
    ...twin
  },
  {
    name: "the estimate is committed instead of the charge",
    changes: [
      {
        file: settlements,
        from: "yield* budget.commit(row, row.charged)",
        to: "yield* budget.commit(row, row.stroops)"
      }
    ],
    ...twin
  },
  {
    name: "success is given to two concurrent callers",
    changes: [
      {
        file: waiting,
        from: "return (yield* settlements.claimDelivery(id, principal.owner)) ? answerFinal(record.value, true) : pending",
        to: "return answerFinal(record.value, true)"
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
      { file: "kernel/Facts.ts", from: "t.top + row_number() over (order by w.id) as position", to: "w.id as position" }
    ],
    ...facts
  },
  {
    name: "two replicas give positions at once",
    changes: [{ file: "kernel/Facts.ts", from: "select pg_advisory_xact_lock(724402404)", to: "select 724402404" }],
    ...facts
  },
  {
    name: "new facts sort below a restored cursor",
    changes: [
      {
        file: "kernel/Facts.ts",
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
        file: "kernel/ledger/notBeyond.ts",
        from: "return Math.min(latestLedger, sequence)",
        to: "return Math.max(latestLedger, sequence)"
      }
    ],
    catcher: vitest("test/kernel/ledger/notBeyond.test.ts")
  },
  {
    name: "a standing far ahead of the ledger counts",
    changes: [
      {
        file: "kernel/settlement/gatherEvidence.ts",
        from: "if (!(yield* isReached(answer.latestLedger))) continue",
        to: "yield* isReached(answer.latestLedger)"
      }
    ],
    ...simulation
  },
  {
    name: "no bid in the budget",
    changes: [
      {
        file: "kernel/payment/settle/recordSettlement.ts",
        from: "budgetStroops: verified.resourceFeeStroops + (yield* mostBid(settling))",
        to: "budgetStroops: verified.resourceFeeStroops + 0n * (yield* mostBid(settling))"
      }
    ],
    ...simulation
  },
  {
    name: "no resource fee in the budget",
    changes: [
      {
        file: "kernel/payment/settle/recordSettlement.ts",
        from: "budgetStroops: verified.resourceFeeStroops + (yield* mostBid(settling))",
        to: "budgetStroops: yield* mostBid(settling)"
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
        to: "timeMax: BigInt(Math.floor(settling.startedAt / 1_000) + 3_600)"
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
  }
]
