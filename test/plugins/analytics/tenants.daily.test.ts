// Reads every route of the interface as two tenants: no answer to one key contains data of the other key's payments.
// The routes come from the process's own claims, so an added route is read too.
import { expect, it } from "@effect/vitest"
import { Context, Effect } from "effect"
import { RouteClaims } from "../../../kernel/plugin/Routes.ts"
import { eventually } from "../../support/eventually.ts"
import { type Answer, type Facilitator, startFacilitator } from "../../support/facilitator.ts"

const secrets = { alpha: "a-secret-of-tenant-alpha", beta: "b-secret-of-tenant-beta" }
type Tenant = keyof typeof secrets
const others = { alpha: "beta", beta: "alpha" } as const
const bearer = (key: string) => ({ headers: { authorization: `Bearer ${key}` } })

/** One settled and one refused payment of a key. */
const pay = Effect.fnUntraced(function* (facilitator: Facilitator, tenant: Tenant) {
  const payer = yield* facilitator.account()
  const payTo = (yield* facilitator.account(0n)).publicKey()
  const amount = tenant === "alpha" ? 123_457n : 7_654_321n
  const identifier = `identifier-of-${tenant}-0001`
  const { body } = yield* facilitator.payment({
    payer,
    payTo,
    amount,
    resourceUrl: `https://${tenant}.example/secret-${tenant}`,
    extensions: { "payment-identifier": { info: { id: identifier } } }
  })
  const { headers } = bearer(secrets[tenant])
  const settled = yield* facilitator.settle(body, headers)
  expect(settled.json.success).toBe(true)
  const late = yield* facilitator.payment({ payer, payTo, amount, tamper: { expiryOffset: -100 } })
  expect((yield* facilitator.verify(late.body, headers)).json.isValid).toBe(false)
  return {
    payer: payer.publicKey(),
    payTo,
    identifier,
    hash: String(settled.json.transaction),
    words: [payer.publicKey(), payTo, identifier, String(settled.json.transaction), `secret-${tenant}`, String(amount)]
  }
})

type Paid = Effect.Success<ReturnType<typeof pay>>

/** Requests of a route with a tenant's data in every place that the route has for it. */
const requestsOf = (path: string, { hash, identifier, payTo, payer }: Paid): ReadonlyArray<string> => {
  const filled = [payer, payTo].map((address) =>
    path.replace(":address", address).replace(":hash", hash).replace(":id", "1").replace(/\*$/, "x")
  )
  const queries = [
    "",
    `?identifier=${identifier}`,
    `?hash=${hash}`,
    `?payTo=${payTo}`,
    `?party=${payer}`,
    `?payer=${payer}`,
    "?days=0",
    `?q=${hash}`,
    `?q=${payTo}`,
    `?q=${identifier}`,
    "?after=0"
  ]
  if (!/^.(analytics|settlements|catalog)/.test(path)) return [...new Set(filled)]
  return [...new Set(filled)].flatMap((one) => queries.map((query) => one + query))
}

/** A stream's content up to its first pause. */
const untilQuiet = async (response: Response): Promise<string> => {
  let text = ""
  for await (const chunk of response.body!.pipeThrough(new TextDecoderStream())) {
    text += chunk
    if (text.includes(": heartbeat")) break
  }
  return text
}

const read = (facilitator: Facilitator, path: string, key: string, csv: boolean) =>
  Effect.tryPromise(async (): Promise<Pick<Answer, "status" | "text">> => {
    const headers = { authorization: `Bearer ${key}`, ...(csv ? { accept: "text/csv" } : {}) }
    const response = await fetch(facilitator.url + path, { headers, redirect: "manual" })
    if (!response.headers.get("content-type")?.startsWith("text/event-stream"))
      return { status: response.status, text: await response.text() }
    return { status: response.status, text: await untilQuiet(response) }
  })

const environment = {
  FACILITATOR_API_KEYS: `alpha:${secrets.alpha},beta:${secrets.beta},all(analytics:all):a-secret-of-the-whole`,
  OPERATOR_API_KEYS: "ops:a-secret-of-an-operator"
}

it.live(
  "no route answers one key with another key's payments",
  () =>
    Effect.scoped(
      Effect.gen(function* () {
        const facilitator = yield* startFacilitator({ environment, set: ["events.heartbeat_ms=100"] })
        const paid = { alpha: yield* pay(facilitator, "alpha"), beta: yield* pay(facilitator, "beta") }
        const all = (key: string) => facilitator.ask("/analytics/v1/settlements", bearer(key))
        yield* eventually(Effect.map(all("a-secret-of-an-operator"), ({ json }) => json.items?.length === 2))
        const refusals = facilitator.ask("/analytics/v1/refusals", bearer("a-secret-of-the-whole"))
        yield* eventually(Effect.map(refusals, ({ json }) => json.items?.length === 2))

        const paths = Context.get(facilitator.services as Context.Context<RouteClaims>, RouteClaims)
          .all()
          .flatMap(({ method, path }) => (method === "GET" ? [path] : []))
        expect(paths.length).toBeGreaterThan(60)
        const seen = { alpha: new Set<string>(), beta: new Set<string>() }
        for (const tenant of ["alpha", "beta"] as const) {
          for (const path of paths) {
            const asked = requestsOf(path, paid[others[tenant]])
            const named = [...new Set([...asked, ...requestsOf(path, paid[tenant])])]
            for (const request of named) {
              for (const csv of path.startsWith("/analytics") ? [false, true] : [false]) {
                const { status, text } = yield* read(facilitator, request, secrets[tenant], csv)
                expect([request, status < 500 || path.startsWith("/health")]).toEqual([request, true])
                // The answer may repeat data from the request itself.
                const found = paid[others[tenant]].words.filter(
                  (word) => text.includes(word) && !request.includes(word)
                )
                expect([request, csv, status, found]).toEqual([request, csv, status, []])
                if (paid[tenant].words.some((word) => text.includes(word) && !request.includes(word)))
                  seen[tenant].add(path)
              }
            }
          }
        }
        // The test reads something: a key's own payments are in these.
        for (const path of [
          "settlements",
          "transactions",
          "refusals",
          "overview",
          "pulse",
          "buyers",
          "sellers",
          "find"
        ])
          expect([path, seen.alpha.has(`/analytics/v1/${path}`)]).toEqual([path, true])
        for (const path of ["/analytics/v1/events", "/settlements/events", "/settlements"])
          expect([path, seen.beta.has(path)]).toEqual([path, true])

        for (const key of ["a-secret-of-the-whole", "a-secret-of-an-operator"])
          expect((yield* all(key)).json.items.length).toBe(2)
        const own = (yield* facilitator.ask("/analytics/v1/overview", bearer(secrets.alpha))).json
        expect([own.total_transactions, own.total_amount, own.unique_buyers]).toEqual(["1", "123457", "1"])
        const other = yield* facilitator.ask(`/analytics/v1/transactions/${paid.beta.hash}`, bearer(secrets.alpha))
        expect(other.status).toBe(404)
        const address = yield* facilitator.ask(`/analytics/v1/sellers/${paid.beta.payTo}`, bearer(secrets.alpha))
        expect(address.status).toBe(404)
      })
    ),
  240_000
)

it.live(
  "the only label reads all payments, and a scope is needed once there are two",
  () =>
    Effect.scoped(
      Effect.gen(function* () {
        const facilitator = yield* startFacilitator({
          environment: { FACILITATOR_API_KEYS: `alpha:${secrets.alpha},alpha:another-secret-of-alpha` }
        })
        const { status } = yield* facilitator.ask("/analytics/v1/search/conversion", bearer(secrets.alpha))
        expect(status).toBe(200)
      })
    ),
  120_000
)
