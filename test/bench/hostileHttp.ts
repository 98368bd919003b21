// A sample of the hostile day over HTTP: free payers have spam verified, twenty declarations each, with invented
// origins, below the honest sellers' origins, and with the same names as their listings, while the honest sellers list,
// are paid and raise their prices. The facilitator, its ledger and the sellers' origins are real; every payment is
// signed.
import { NodeServices } from "@effect/platform-node"
import { Effect } from "effect"
import { testnetUsdc } from "../../runtime/redteam/buyer.ts"
import { type Facilitator, startFacilitator } from "../support/facilitator.ts"
import { sellingPage, startOrigin } from "../plugins/catalog/startOrigin.ts"
import { eventually } from "../support/eventually.ts"
import {
  browse,
  type Declared,
  declaring,
  type Json,
  outcomes,
  queryDeclaration,
  resolve
} from "../plugins/catalog/support.ts"

const ofEach = 20

export interface HttpSample {
  readonly spam: Readonly<Record<string, number>>
  readonly honest: {
    readonly sellers: number
    readonly right: number
    readonly first: number
    readonly refused: number
    /** For each wrong listing: the past and next probe of its origin, and the origin's answer. */
    readonly wrong: ReadonlyArray<string>
  }
  /** Milliseconds of CPU of one verify with spam, including everything in this process. */
  readonly cpuOfSpam: number
}

/** State of the probe of a listing's origin. */
const readOf = Effect.fnUntraced(function* (facilitator: Facilitator, url: string) {
  const [row] = yield* Effect.orDie(
    facilitator.sql<{ probe: string }>`select row_to_json(p)::text || ' at ' || now() as probe
      from catalog_probes p join catalog_resources r on r.id = p.resource_id where r.resource = ${url}`
  )
  return `${url}: ${row?.probe ?? "never probed"}`
})

const run = Effect.fnUntraced(function* (payersCount: number, sellersCount: number) {
  const facilitator = yield* startFacilitator({
    closeMillis: 1_000,
    set: ["plugins=[ledger-local, x402-exact, catalog]", "catalog_security.probe_pause_seconds=0"]
  })
  const buyer = yield* facilitator.account()
  const sellers = yield* Effect.forEach(
    Array.from({ length: sellersCount }),
    Effect.fnUntraced(function* (_, at: number) {
      const origin = yield* startOrigin
      const payTo = (yield* facilitator.account()).publicKey()
      const page = { payTo, asset: testnetUsdc, description: `Service ${at}`, declaration: queryDeclaration() }
      origin.answers.set("/api", sellingPage(page))
      return { origin, page, payTo, url: `${origin.url}/api`, about: { description: `Service ${at}` } }
    })
  )
  const payers = yield* Effect.forEach(Array.from({ length: payersCount }), () => facilitator.account())
  const spam: Record<string, number> = {}
  let refused = 0
  const honest = Effect.fnUntraced(function* (seller: (typeof sellers)[number], amount = 1_000n) {
    const { about, payTo, url } = seller
    const answer = yield* facilitator.settle(yield* declaring(facilitator, { payer: buyer, payTo, url, about, amount }))
    const outcome = outcomes(answer)?.["catalog"]
    if (answer.json.success !== true || outcome?.status === "rejected") {
      refused += 1
      console.log(`over HTTP, refused: ${url}, ${answer.json.errorReason ?? outcome?.rejectedReason}`)
    }
  })
  const spamOf = (payer: number, at: number): Partial<Declared> & { readonly url: string } => {
    const seller = sellers[(payer + at) % sellersCount]!
    const kinds = [
      { url: `https://spam${payer}.example.com/${at}`, about: { description: "Spam" } },
      { url: `${seller.origin.url}/fake/${payer}/${at}`, payTo: seller.payTo, about: { description: "Fake" } },
      { url: seller.url, payTo: seller.payTo, amount: 1n, about: { description: `Owned ${payer} ${at}` } },
      { url: seller.url, about: { description: "Mine" } }
    ]
    return kinds[at % 4]!
  }
  yield* Effect.forEach(sellers.slice(0, Math.ceil(sellersCount / 2)), (seller) => honest(seller), { discard: true })
  const signed = yield* Effect.forEach(payers, (payer, one) =>
    Effect.forEach(
      Array.from({ length: ofEach }, (_, at) => at),
      (at) =>
        declaring(facilitator, {
          payer,
          payTo: payer === payers[0] ? payers.at(-1)!.publicKey() : payers[0]!.publicKey(),
          ...spamOf(one, at)
        })
    )
  )
  const begun = process.cpuUsage()
  yield* Effect.forEach(
    signed.flat(),
    Effect.fnUntraced(function* (body) {
      const answer = yield* facilitator.verify(body)
      const outcome = outcomes(answer)?.["catalog"]
      const reported = outcome?.rejectedReason ?? outcome?.status ?? `not validated: ${answer.json.invalidReason}`
      spam[reported] = (spam[reported] ?? 0) + 1
    }),
    { concurrency: 8, discard: true }
  )
  const { system, user } = process.cpuUsage(begun)
  yield* Effect.forEach(sellers, (seller) => honest(seller), { discard: true })
  for (const [at, { origin, page }] of sellers.entries())
    if (at % 4 === 0) origin.answers.set("/api", sellingPage({ ...page, amount: "2000" }))
  yield* Effect.forEach(sellers, (seller, at) => (at % 4 === 0 ? honest(seller, 2_000n) : Effect.void), {
    discard: true
  })
  const isRight = ({ payTo, url }: (typeof sellers)[number], at: number) => {
    const holds = ({ json }: { readonly json: Json }) => {
      const { accepts, description, grade } = (json["resource"] ?? {}) as Json
      const [option] = accepts ?? []
      const isPriced = option?.amount === (at % 4 === 0 ? "2000" : "1000") && option.payTo === payTo
      return grade === "origin" && description === `Service ${at}` && isPriced
    }
    return Effect.map(eventually(resolve(facilitator, url), holds), holds)
  }
  const areRight = yield* Effect.forEach(sellers, isRight)
  const right = areRight.filter((one) => one).length
  const wrong = yield* Effect.forEach(
    sellers.filter((_, at) => areRight[at] !== true),
    ({ url }) => readOf(facilitator, url)
  )
  const page = (yield* browse(facilitator))["items"] as ReadonlyArray<Json>
  const first = sellers.filter(({ url }) => page.some(({ resource }) => resource === url)).length
  const cpuOfSpam = (user + system) / 1_000 / (payersCount * ofEach)
  return { spam, honest: { sellers: sellersCount, right, first, refused, wrong }, cpuOfSpam } satisfies HttpSample
})

export const hostileHttp = (payers: number, sellers: number): Promise<HttpSample> =>
  Effect.runPromise(Effect.scoped(run(payers, sellers)).pipe(Effect.provide(NodeServices.layer), Effect.orDie))
