// The table of proofs in `kernel/decisions/rules.md`, row by row through `decide`: the document and the code agree.
import { expect, it } from "vitest"
import { decide, unresolvedAfterLedgers } from "../../../../kernel/settlement/state/decide.ts"
import type { Evidence, OpenSettlement } from "../../../../kernel/settlement/state/Settlement.ts"
import { readText } from "../../../architecture/sources.ts"
import {
  absent,
  cancelled,
  executed,
  expires,
  failed,
  included,
  options,
  paid,
  recordedLedger,
  search,
  settlement,
  snapshot
} from "../lives.ts"

const ours = { _tag: "Ours", executed: executed({ innerHash: "lost" }), amountTransferred: 10n } as const
const another = { _tag: "Elsewhere", ledger: 1_003, transaction: "theirs", isOurs: false } as const
const spentAt = 1_003
const passed = (changes = {}) => snapshot({ sequence: 7n, ...changes })
const found = (spending: typeof ours | typeof another) => search({ fromLedger: spentAt, toLedger: spentAt, spending })
const held = settlement()
const freed: OpenSettlement = { ...held, channelHeld: false }
const atExpiry = (changes = {}) => snapshot({ ledger: expires, ...changes })

const rows: Readonly<Record<string, readonly [OpenSettlement, Evidence]>> = {
  "the transaction succeeded with the promised movement": [held, included(paid)],
  "the transaction succeeded without the expected transfer": [
    held,
    included({ ...paid, amountTransferred: undefined })
  ],
  "the transaction failed, nonce unspent at that ledger": [held, included(failed, { snapshot: passed() })],
  "the transaction failed, nonce spent by a transaction of ours": [
    held,
    included(failed, { snapshot: passed({ nonce: spentAt }), search: found(ours) })
  ],
  "the transaction failed, nonce spent by another transaction": [
    held,
    included(failed, { snapshot: passed({ nonce: spentAt }), search: found(another) })
  ],
  "our no-op used the channel's number, nonce unspent": [held, included(cancelled, { snapshot: passed() })],
  "the channel's number passed and the nonce unspent, in one answer before the expiry": [
    held,
    absent(1_005, { snapshot: passed() })
  ],
  "the channel's number passed, nonce spent by a transaction of ours": [
    held,
    absent(1_005, { snapshot: passed({ nonce: spentAt }), search: found(ours) })
  ],
  "the channel's number passed, nonce spent by another transaction": [
    held,
    absent(1_005, { snapshot: passed({ nonce: spentAt }), search: found(another) })
  ],
  "the channel's number passed, each ledger of the authorization's life searched and none used it": [
    freed,
    absent(expires + 2, {
      snapshot: passed({ ledger: expires + 2 }),
      search: search({ fromLedger: recordedLedger - 24, numberUsedBy: "elsewhere" })
    })
  ],
  "at the expiry, the channel's number below ours and the nonce unspent": [
    held,
    absent(expires, { snapshot: atExpiry() })
  ],
  "after the expiry, the channel's number below ours, each ledger of the life searched and none used it": [
    held,
    absent(expires + 1, { snapshot: atExpiry({ ledger: expires + 1 }), search: search() })
  ],
  "at the expiry, the channel's number below ours, nonce spent by a transaction of ours whose record was lost": [
    held,
    absent(expires, { snapshot: atExpiry({ nonce: spentAt }), search: found(ours) })
  ],
  "at the expiry, the channel's number below ours, nonce spent by another transaction": [
    held,
    absent(expires, { snapshot: atExpiry({ nonce: spentAt }), search: found(another) })
  ],
  "720 ledgers after the expiry, none of these": [
    freed,
    absent(expires + unresolvedAfterLedgers, {
      snapshot: passed({ ledger: expires + unresolvedAfterLedgers, nonce: "unknown" })
    })
  ]
}

/** The rows of the document: the proof, and the state and reason that it names. */
const table = readText("kernel/decisions/rules.md")
  .split("\n")
  .flatMap((line) => {
    const [, proof, state, reason] =
      /^\| (.+) \| `(settled|failed|expired|unresolved)`(?:, `(settle_ledger_\w+)`)? \|$/.exec(line) ?? []
    return proof === undefined ? [] : [{ proof, state, reason }]
  })

it("the table has these rows and no other", () => {
  expect(table.map(({ proof }) => proof)).toEqual(Object.keys(rows))
})

it.each(table)("$proof: $state", ({ proof, reason, state }) => {
  const [open, evidence] = rows[proof]!
  expect(decide(open, evidence, options)).toMatchObject({ _tag: "End", outcome: { state, reason } })
})

it("the table counts the ledgers after which a settlement is unresolved", () => {
  expect(table.at(-1)?.proof).toContain(String(unresolvedAfterLedgers))
})
