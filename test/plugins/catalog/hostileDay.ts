// A hostile day at the catalog. Free payers, whose payments are only verified, declare spam under their own origins,
// under honest sellers' origins and with the sellers' exact names. At the same time, honest sellers list, are paid and
// change their prices. It runs on the catalog's write and read parts over a real database, without payments.
import { Effect, Option } from "effect"
import type { CatalogValues } from "../../../plugins/catalog/Config.ts"
import { answerOf, openStore, type Said, values } from "./store.ts"

export interface DayOptions {
  readonly payers: number
  readonly spam: number
  readonly sellers: number
  readonly settings?: Partial<CatalogValues>
}

export interface DayFigures {
  readonly spam: {
    readonly declared: number
    readonly listed: number
    readonly held: number
    readonly rejected: number
  }
  readonly honest: {
    readonly sellers: number
    /** Declarations that were refused; none must be. */
    readonly refused: number
    /** Listings with the seller's own text and price. */
    readonly right: number
    /** Listings found by their recipient. */
    readonly found: number
    /** Sellers with all declarations accepted. */
    readonly withinQuota: number
  }
  /** Rows left by all free payers, and by one of them. */
  readonly rows: { readonly all: number; readonly ofOnePayer: number }
}

const originOf = (seller: number): string => `https://seller${seller}.example.com`
const wordsOf = (seller: number): Said => ({
  resource: `${originOf(seller)}/api`,
  payTo: `GSELLER${seller}`,
  description: `Service ${seller}`,
  amount: "1000"
})

/**
 * One spam declaration, alternating between the spammer's origin, a path below a seller's origin, and a seller's own
 * listing.
 */
const spamOf = (at: number, payer: number, sellers: number): Said => {
  const seller = at % sellers
  switch (at % 4) {
    case 0:
      return { resource: `https://spam${payer}.example.net/${at}`, payTo: `GSPAM${payer}`, description: "Spam" }
    case 1:
      return { resource: `${originOf(seller)}/fake/${at}`, payTo: `GSELLER${seller}`, description: "Fake" }
    case 2:
      return { ...wordsOf(seller), description: `Owned ${at}`, amount: "1" }
    default:
      return { ...wordsOf(seller), payTo: `GSPAM${payer}`, description: "Mine" }
  }
}

export const hostileDay = Effect.fn("hostileDay")(function* ({ payers, sellers, settings, spam }: DayOptions) {
  const config = { ...values, newResourcesPerDayMax: 2_000, declaredBytesPerDayMax: 67_108_864, versionsPerDayMax: 100 }
  const { declare, probeAt, sql } = yield* openStore({ ...config, ...settings })
  const refusals = new Map<number, number>()
  const honest = Effect.fnUntraced(function* (seller: number, said: Said, own: boolean) {
    const carrier = own ? ({ grade: "declared" } as const) : ({ stage: "settled" } as const)
    const { decision } = yield* declare(said, { payer: `GBUYER${seller}`, ...carrier })
    if (decision === "rejected") refusals.set(seller, (refusals.get(seller) ?? 0) + 1)
  })
  const decisions = { listed: 0, held: 0, rejected: 0 }
  // Each seller's first sale comes somewhere in the morning's spam. Every fourth seller has proven its key; for every
  // other one a false declaration precedes the sale, and its origin, probed because of it, gives the truth.
  for (let at = 0; at < spam; at++) {
    const seller = Math.floor((at * sellers * 2) / spam)
    if (at % Math.max(1, Math.floor(spam / sellers / 2)) === 0 && seller < sellers) {
      if (seller % 2 === 1) yield* declare({ ...wordsOf(seller), description: "Lies" }, { payer: "GFREE0" })
      yield* honest(seller, wordsOf(seller), seller % 4 === 0)
      if (seller % 2 === 1) yield* probeAt(wordsOf(seller).resource!, answerOf({ said: [wordsOf(seller)] }))
    }
    const payer = at % payers
    const { decision } = yield* declare(spamOf(at, payer, Math.max(1, Math.min(seller, sellers))), {
      payer: `GFREE${payer}`
    })
    if (decision === "listed") decisions.listed += 1
    else if (decision === "held") decisions.held += 1
    else decisions.rejected += 1
  }
  // In the evening each seller is paid again, and each seller that has proven its key raises its price.
  for (let seller = 0; seller < sellers; seller++) {
    yield* honest(seller, wordsOf(seller), false)
    if (seller % 4 === 0) yield* honest(seller, { ...wordsOf(seller), amount: "2000" }, true)
  }
  const shown = yield* sql<{ resource: string; pay_tos: ReadonlyArray<string>; description: string; amount: string }>`
    select r.resource, r.pay_tos, r.document::jsonb->>'description' as description,
      r.document::jsonb->'accepts'->0->>'amount' as amount
    from catalog_resources r where r.state = 'active' and r.resource like '%/api'`
  const mine = (seller: number) => shown.find(({ resource }) => resource === wordsOf(seller).resource)
  const all = Array.from({ length: sellers }, (_, seller) => seller)
  const isRight = (seller: number): boolean => {
    const amount = seller % 4 === 0 ? "2000" : "1000"
    const one = mine(seller)
    return one?.description === `Service ${seller}` && one.amount === amount && one.pay_tos[0] === `GSELLER${seller}`
  }
  const [rows] = yield* sql<{ resources: number; claims: number; quotas: number }>`select
    (select count(*)::int from catalog_resources) as resources, (select count(*)::int from catalog_claims) as claims,
    (select count(*)::int from catalog_quotas) as quotas`
  const left = rows!.resources - sellers + rows!.claims + rows!.quotas
  const figures: DayFigures = {
    spam: { declared: spam, ...decisions },
    honest: {
      sellers,
      refused: [...refusals.values()].reduce((sum, one) => sum + one, 0),
      right: all.filter(isRight).length,
      found: all.filter((seller) => mine(seller)?.pay_tos.includes(`GSELLER${seller}`) === true).length,
      withinQuota: all.filter((seller) => !refusals.has(seller)).length
    },
    rows: { all: left, ofOnePayer: Math.round((left / payers) * 10) / 10 }
  }
  return { figures, lost: Option.fromUndefinedOr(all.find((seller) => !isRight(seller))) }
})
