// Attempts of a stranger, an extension or a defect at the payment routes, on each database of the run: the answer keeps
// its shape, the payment its outcome.
import { expect, it } from "@effect/vitest"
import { Context, Effect, Scope } from "effect"
import { request as httpRequest } from "node:http"
import { describe } from "vitest"
import { Extensions } from "../../../kernel/payment/Extension.ts"
import { type Check, checks } from "../../../plugins/x402-exact/checks.ts"
import { parseFault } from "../../../plugins/ledger-local/node/parseFault.ts"
import { databaseKinds } from "../../support/databases.ts"
import { type Answer, type Facilitator, type FacilitatorOptions, startFacilitator } from "../../support/facilitator.ts"
import { startScriptedRpc } from "../../support/scriptedRpc.ts"
import { eventually } from "../../support/eventually.ts"

const price = 10_000n

const cast = Effect.fnUntraced(function* (facilitator: Facilitator) {
  const payer = yield* facilitator.account()
  const seller = (yield* facilitator.account(0n)).publicKey()
  return {
    payer,
    seller,
    pay: (more: Partial<Parameters<Facilitator["payment"]>[0]> = {}) =>
      facilitator.payment({ payer, payTo: seller, amount: price, ...more })
  }
})

const withFacilitator =
  (options: FacilitatorOptions, use: (facilitator: Facilitator) => Effect.Effect<void, unknown, Scope.Scope>) => () =>
    Effect.scoped(Effect.flatMap(startFacilitator(options), use))

const responsesOf = ({ headers }: Answer): any => JSON.parse(atob(headers.get("extension-responses") ?? "e30="))

describe.each(databaseKinds)("on %s", (database) => {
  it.live(
    "settles a payment whose resource URL the database cannot store",
    withFacilitator({ database }, (facilitator) =>
      Effect.gen(function* () {
        const { pay, seller } = yield* cast(facilitator)
        const urls = ["http://127.0.0.1/\u0000", "http://127.0.0.1/\ud800", "", "x".repeat(5_000), "‮http://127.0.0.1/"]
        for (const resourceUrl of urls) {
          const settled = yield* facilitator.settle((yield* pay({ resourceUrl })).body)
          expect([JSON.stringify(resourceUrl).slice(0, 60), settled.json.success, settled.json.errorReason]).toEqual([
            JSON.stringify(resourceUrl).slice(0, 60),
            true,
            undefined
          ])
        }
        expect(yield* facilitator.balance(seller)).toBe(price * BigInt(urls.length))
      })
    ),
    240_000
  )

  it.live(
    "extensions run after the decision and cannot change or delay it [S20, S21, S78, S79, S88, S254, S255, S327]",
    withFacilitator({ database, set: ["plugins=[ledger-local, x402-exact]"] }, (facilitator) =>
      Effect.gen(function* () {
        const { pay, seller } = yield* cast(facilitator)
        const extensions = Context.getUnsafe(facilitator.services, Extensions)
        let observed: ReadonlyArray<unknown> = []
        const ways: ReadonlyArray<readonly [string, () => Effect.Effect<any>, unknown]> = [
          [
            "rejects",
            () => Effect.succeed({ status: "rejected", rejectedReason: "schema_invalid" }),
            { status: "rejected", rejectedReason: "schema_invalid" }
          ],
          ["succeeds", () => Effect.succeed({ status: "success" }), { status: "success" }],
          ["dies", () => Effect.die("boom"), { status: "processing" }],
          [
            "throws",
            () => {
              throw new Error("boom")
            },
            { status: "processing" }
          ],
          ["never answers", () => Effect.never, { status: "processing" }]
        ]
        for (const [name, observe, expected] of ways) {
          yield* Effect.scoped(
            Effect.gen(function* () {
              yield* extensions.register({
                key: "catalog",
                observe: (observation) => {
                  observed = [...observed, [observation.stage, observation.payer, observation.transaction._tag]]
                  return observe()
                }
              })
              const { body } = yield* pay({ extensions: { bazaar: { info: {} }, unknown: {} } })
              const verified = yield* facilitator.verify(body)
              expect([name, verified.json.isValid, responsesOf(verified)]).toEqual([name, true, { bazaar: expected }])
              const settled = yield* facilitator.settle(body)
              expect([name, settled.json.success, responsesOf(settled)]).toEqual([name, true, { bazaar: expected }])
            })
          )
        }
        expect(yield* facilitator.balance(seller)).toBe(price * BigInt(ways.length))
        expect(observed).toHaveLength(2 * ways.length)
        expect(observed.slice(0, 2)).toEqual([
          ["verified", expect.any(String), "None"],
          ["settled", expect.any(String), "Some"]
        ])
        yield* Effect.scoped(
          Effect.gen(function* () {
            yield* extensions.register({ key: "catalog", observe: () => Effect.succeed({ status: "success" }) })
            const refused = yield* facilitator.verify(
              (yield* pay({ extensions: { catalog: {} }, tamper: { expiryOffset: -100 } })).body
            )
            expect([refused.json.isValid, refused.headers.get("extension-responses")]).toEqual([false, null])
            const none = yield* facilitator.verify((yield* pay()).body)
            expect([none.json.isValid, none.headers.get("extension-responses")]).toEqual([true, null])
          })
        )
      })
    ),
    240_000
  )

  it.live(
    "a defect after the record does not fail the payment; before, it does",
    () => {
      let dies: string | undefined
      const atStep = (step: string) => (step === dies ? Effect.die(new Error("of our own")) : Effect.void)
      return withFacilitator({ database, atStep }, (facilitator) =>
        Effect.gen(function* () {
          const { pay, seller } = yield* cast(facilitator)
          dies = "afterRecord"
          const recorded = yield* facilitator.settle((yield* pay()).body)
          expect([recorded.status, recorded.json]).toMatchObject([200, { success: true }])
          dies = "beforeRecord"
          const { body } = yield* pay()
          const died = yield* facilitator.settle(body)
          expect([died.status, died.json]).toMatchObject([500, { success: false, errorReason: "internal_error" }])
          dies = undefined
          expect((yield* facilitator.settle(body)).json).toMatchObject({ success: true })
          expect(yield* facilitator.balance(seller)).toBe(2n * price)
        })
      )()
    },
    240_000
  )

  it.live(
    "answers a defect in the payment's shape; the payment settles afterwards",
    withFacilitator({ database }, (facilitator) =>
      Effect.gen(function* () {
        const { pay, seller } = yield* cast(facilitator)
        const { body } = yield* pay()
        const list = checks as Array<Check>
        yield* Effect.acquireUseRelease(
          Effect.sync(() =>
            list.unshift({
              name: "a defect",
              find: () => {
                throw new Error("of our own")
              }
            })
          ),
          () =>
            Effect.gen(function* () {
              const verified = yield* facilitator.verify(body)
              expect([verified.status, verified.json]).toEqual([
                500,
                {
                  isValid: false,
                  invalidReason: "internal_error",
                  invalidMessage: expect.any(String),
                  traceId: expect.stringMatching(/^[0-9a-f]{32}$/)
                }
              ])
              const settled = yield* facilitator.settle(body)
              expect([settled.status, settled.json]).toMatchObject([
                500,
                { success: false, transaction: "", network: expect.any(String), errorReason: "internal_error" }
              ])
            }),
          () => Effect.sync(() => list.shift())
        )
        expect((yield* facilitator.settle(body)).json).toMatchObject({ success: true })
        expect(yield* facilitator.balance(seller)).toBe(price)
      })
    ),
    240_000
  )

  it.live(
    "reports unknown rather than not found while the database fails",
    withFacilitator({ database }, (facilitator) =>
      Effect.gen(function* () {
        const { pay } = yield* cast(facilitator)
        const { body } = yield* pay({ extensions: { "payment-identifier": { info: { id: "0123456789abcdef" } } } })
        const settled = yield* facilitator.settle(body)
        expect(settled.json).toMatchObject({ success: true })
        const read = facilitator.ask("/settlements?identifier=0123456789abcdef")
        yield* facilitator.sql`alter table kernel_settlements rename to kernel_hidden`
        const blind = yield* read
        expect([blind.status, blind.json, blind.headers.get("retry-after")]).toEqual([
          503,
          { error: "temporarily_unavailable" },
          "1"
        ])
        expect((yield* facilitator.settle(body)).json).toMatchObject({
          success: false,
          errorReason: "settle_ledger_temporarily_unavailable",
          transaction: ""
        })
        yield* facilitator.sql`alter table kernel_hidden rename to kernel_settlements`
        expect((yield* read).json.items[0]).toMatchObject({ status: "success", transaction: settled.json.transaction })
      })
    ),
    240_000
  )

  it.live(
    "finishes the payment of a disconnected client and reports it on retry [S93]",
    withFacilitator({ database }, (facilitator) =>
      Effect.gen(function* () {
        const { pay, seller } = yield* cast(facilitator)
        const { body } = yield* pay({
          extensions: { "payment-identifier": { info: { id: "the-client-hung-up-0123" } } }
        })
        yield* Effect.promise(
          () =>
            new Promise<void>((resolve) => {
              const request = httpRequest(`${facilitator.url}/settle`, {
                method: "POST",
                headers: { "content-type": "application/json" }
              })
              request.on("error", () => resolve()).on("close", () => resolve())
              request.end(JSON.stringify(body), () => setTimeout(() => request.destroy(), 60))
            })
        )
        yield* eventually(facilitator.settle(body), ({ json }) => json.success === true)
        expect(yield* facilitator.balance(seller)).toBe(price)
      })
    ),
    240_000
  )
})

it.live(
  "answers every method with JSON, or without a body",
  withFacilitator({}, (facilitator) =>
    Effect.gen(function* () {
      for (const path of ["/health", "/health/live", "/health/ready", "/supported"]) {
        const head = yield* facilitator.ask(path, { method: "HEAD" })
        expect([path, head.status, head.text]).toEqual([path, 200, ""])
      }
      for (const path of ["/verify", "/settle", "/supported", "/health", "/nowhere"]) {
        for (const method of ["OPTIONS", "PUT", "DELETE", "PATCH"]) {
          const answer = yield* facilitator.ask(path, { method })
          expect([
            path,
            method,
            answer.status,
            answer.headers.get("content-type")?.startsWith("application/json")
          ]).toEqual([path, method, 404, true])
        }
      }
      for (const path of [
        "/%zz",
        "/%E0%A4%A",
        "/..%2fsettle",
        "/SETTLE",
        "/Settle",
        "/settle/x",
        `/${"a".repeat(8_000)}`
      ]) {
        const answer = yield* facilitator.ask(path, { method: "POST", body: "{}" })
        expect([path.slice(0, 20), answer.status, answer.json?.error]).toEqual([path.slice(0, 20), 404, "not_found"])
      }
      // A base address that ends in a slash is an honest mistake.
      for (const path of ["//settle", "/settle/", "/settle?x=1"]) {
        const answer = yield* facilitator.ask(path, { method: "POST", body: "{}" })
        expect([path, answer.status, answer.json?.success]).toEqual([path, 400, false])
      }
    })
  ),
  240_000
)

it.live(
  "parses a JSON body regardless of its content type [S2]",
  withFacilitator({}, (facilitator) =>
    Effect.gen(function* () {
      const { pay } = yield* cast(facilitator)
      const { body } = yield* pay()
      for (const type of ["application/json; charset=utf-8", "text/plain", "application/x-www-form-urlencoded", ""]) {
        const verified = yield* facilitator.verify(body, { "content-type": type })
        expect([type, verified.json.isValid]).toEqual([type, true])
        expect(verified.headers.get("content-type")).toContain("application/json")
        expect(verified.headers.get("cache-control")).toBe("no-store")
      }
      const compressed = yield* facilitator.verify(body, { "content-encoding": "gzip" })
      expect([compressed.status, compressed.json.invalidReason]).toEqual([400, "invalid_request"])
    })
  ),
  240_000
)

it.live(
  "waits for a silent ledger no longer than for a settlement",
  withFacilitator({ set: ["limits.rpc_timeout_ms=60000", "limits.settle_timeout_ms=1500"] }, (facilitator) =>
    Effect.gen(function* () {
      const { pay } = yield* cast(facilitator)
      const { body } = yield* pay()
      yield* facilitator.ledger.setFaults([
        parseFault("silent=simulateTransaction") as Exclude<ReturnType<typeof parseFault>, string>
      ])
      const [verified, settled] = yield* Effect.all([facilitator.verify(body), facilitator.settle(body)], {
        concurrency: 2
      }).pipe(Effect.timeout("50 seconds"))
      expect([verified.status, verified.json.invalidReason]).toEqual([503, "ledger_unavailable"])
      expect([settled.status, settled.json.errorReason]).toEqual([503, "settle_ledger_temporarily_unavailable"])
    })
  ),
  240_000
)

it.live(
  "skips an endpoint of another network and reports it [S73]",
  () =>
    Effect.scoped(
      Effect.gen(function* () {
        const world = yield* startFacilitator()
        const wrong = yield* startScriptedRpc({
          getNetwork: { result: { passphrase: "another network", protocolVersion: 23 } }
        })
        const facilitator = yield* startFacilitator({
          ledgerUrl: world.ledgerUrl,
          set: [`networks.ledger:testnet.rpc_urls=["${wrong.url}", "${world.ledgerUrl}"]`]
        })
        const { pay, seller } = yield* cast(facilitator)
        expect((yield* facilitator.settle((yield* pay()).body)).json).toMatchObject({ success: true })
        expect(yield* facilitator.balance(seller)).toBe(price)
        expect(new Set(wrong.asked)).toEqual(new Set(["getNetwork"]))
        const ready = yield* eventually(
          facilitator.ask("/health/ready"),
          ({ json }) => json.ledger.state === "degraded"
        )
        expect(ready.status).toBe(200)
        expect(ready.json.ledger.detail).toBe("endpoint 1: wrong network")
      })
    ),
  240_000
)
