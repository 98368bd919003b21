// The contribution of one settlement to each rollup, and the sum of many changes: the difference between before and
// after, by key. Since a rollup is the sum of its settlements' parts, subtracting the old part and adding the new one
// keeps it exact (S96, S150–S153). Pure.
import type { SettlementFact } from "./SettlementFact.ts"

type Key = Readonly<Record<string, string | null>>
type Sums = Readonly<Record<string, bigint>>

/** A row of a rollup: key, sums, and the first and last time. */
interface Part {
  readonly key: Key
  readonly sums: Sums
  /** Values that the row collects, by list column; none is ever removed. */
  readonly lists?: Readonly<Record<string, string>>
  readonly at: Date
}

interface Parts {
  readonly totals: ReadonlyArray<Part>
  readonly standings: ReadonlyArray<Part>
  readonly pairs: ReadonlyArray<Part>
  readonly resources: ReadonlyArray<Part>
  readonly reasons: ReadonlyArray<Part>
}

export type Rollup = keyof Parts

/** The day of all history. */
const always = "-infinity"

const hourOf = (at: Date): string => `${at.toISOString().slice(0, 13)}:00:00Z`
export const dayOf = (at: Date): string => at.toISOString().slice(0, 10)

export const startOf = (width: "hour" | "day", at: Date): string =>
  width === "hour" ? hourOf(at) : `${dayOf(at)}T00:00:00Z`

const none: Parts = { totals: [], standings: [], pairs: [], resources: [], reasons: [] }

const partsOf = (fact: SettlementFact | undefined): Parts => {
  if (fact === undefined || fact.status === "open") return none
  const {
    asset,
    errorReason,
    facilitatorId,
    network,
    occurredAt: at,
    organic,
    payTo,
    payer,
    resourceId,
    resourceOrigin,
    scheme,
    status
  } = fact
  const succeeded = status === "success" ? 1n : 0n
  const amount = status === "success" ? (fact.amount ?? 0n) : 0n
  const counted = { transactions: 1n, successful: succeeded, amount }
  return {
    totals: (["hour", "day"] as const).map((width) => ({
      key: { width, starts_at: startOf(width, at), network, scheme, asset, status },
      sums: {
        transactions: 1n,
        amount,
        fee_stroops: fact.feeStroops,
        organic_transactions: organic ? succeeded : 0n,
        organic_amount: organic ? amount : 0n
      },
      at
    })),
    standings: (
      [
        ["buyer", payer],
        ["seller", payTo]
      ] as const
    ).flatMap(([role, address]) =>
      [dayOf(at), always].map((day) => ({
        key: { role, day, address, asset },
        sums: { ...counted, failed: status === "failed" ? 1n : 0n },
        lists: { networks: network, schemes: scheme, facilitators: facilitatorId },
        at
      }))
    ),
    pairs: [{ key: { payer, pay_to: payTo, asset }, sums: counted, at }],
    resources:
      resourceId === undefined
        ? []
        : [{ key: { resource_id: String(resourceId), asset, origin: resourceOrigin }, sums: counted, at }],
    reasons:
      errorReason === null
        ? []
        : [
            {
              key: { day: dayOf(at), reason: errorReason, asset, status },
              sums: { transactions: 1n, fee_stroops: fact.feeStroops },
              at
            }
          ]
  }
}

export interface Change {
  readonly before: SettlementFact | undefined
  readonly after: SettlementFact
}

/** A change of a rollup row: sums may be negative, times widen the row's own. */
export interface Delta {
  readonly key: Key
  readonly sums: Record<string, bigint>
  readonly lists: Record<string, Set<string>>
  firstAt: Date
  lastAt: Date
}

const add = (deltas: Map<string, Delta>, { at, key, lists = {}, sums }: Part, sign: 1n | -1n): void => {
  const name = JSON.stringify(key)
  const delta = deltas.get(name) ?? { key, sums: {}, lists: {}, firstAt: at, lastAt: at }
  for (const [field, value] of Object.entries(sums)) delta.sums[field] = (delta.sums[field] ?? 0n) + sign * value
  for (const [list, word] of Object.entries(lists)) (delta.lists[list] ??= new Set()).add(word)
  if (at < delta.firstAt) delta.firstAt = at
  if (at > delta.lastAt) delta.lastAt = at
  deltas.set(name, delta)
}

/** The changes of a rollup, ordered by key; unchanged rows are left out. */
export const deltasOf = (rollup: Rollup, changes: ReadonlyArray<Change>): ReadonlyArray<Delta> => {
  const deltas = new Map<string, Delta>()
  for (const { after, before } of changes) {
    for (const part of partsOf(before)[rollup]) add(deltas, part, -1n)
    for (const part of partsOf(after)[rollup]) add(deltas, part, 1n)
  }
  return [...deltas]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([, delta]) => delta)
    .filter(({ sums }) => Object.values(sums).some((sum) => sum !== 0n))
}
