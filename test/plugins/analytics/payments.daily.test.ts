import { expect, it } from "@effect/vitest"
import { Deferred, Effect, Fiber } from "effect"
import { describe } from "vitest"
import { databaseKinds } from "../../support/databases.ts"
import { type Facilitator, startFacilitator } from "../../support/facilitator.ts"
import { eventually } from "../../support/eventually.ts"
import { declaring, type Json, mcpDeclaration, queryDeclaration, verified } from "../catalog/support.ts"
import { describedErrors, report } from "./support.ts"

const url = "https://shop.example.com/item"
const quiet = "catalog_security.probe_origins=false"
const usdc = {
  asset: "CBIELTK6YBZJU5UP2WWQEUCYKLPU6AUNZ2BQ4WWFEIE3USCIHMXQDAMA",
  asset_symbol: "USDC",
  asset_decimals: 7
}

const settled = (facilitator: Facilitator, body: unknown) =>
  Effect.map(facilitator.settle(body), ({ json }) => {
    expect(json).toMatchObject({ success: true })
    return json.transaction as string
  })

for (const database of databaseKinds) {
  describe(`analytics of real payments on ${database}`, () => {
    it.live(
      "every report includes settled payments and matches its OpenAPI schema [S133, S136, S137, S141, S144–S153, S156–S167, S178–S180, S244, S308, S316, S320]",
      () =>
        Effect.scoped(
          Effect.gen(function* () {
            const facilitator = yield* startFacilitator({
              database,
              closeMillis: 500,
              set: [quiet, "server.instance=replica-a"]
            })
            const payers = [yield* facilitator.account(), yield* facilitator.account()]
            const [payTo, elsewhere] = [
              (yield* facilitator.account()).publicKey(),
              (yield* facilitator.account()).publicKey()
            ]
            const declared = yield* declaring(facilitator, {
              payer: payers[0]!,
              payTo,
              url,
              amount: 1_500n,
              about: { tags: ["weather"], serviceName: "Weather" }
            })
            yield* verified(facilitator, declared)
            const hash = yield* settled(facilitator, declared)
            // Without a declaration, for a listed resource and its recipient; and for nothing that is listed.
            yield* settled(
              facilitator,
              (yield* facilitator.payment({
                payer: payers[1]!,
                payTo,
                amount: 500n,
                maxTimeoutSeconds: 300,
                resourceUrl: `${url}?city=Riga`
              })).body
            )
            yield* settled(
              facilitator,
              (yield* facilitator.payment({
                payer: payers[1]!,
                payTo: elsewhere,
                amount: 7n,
                maxTimeoutSeconds: 300,
                resourceUrl: url
              })).body
            )

            const overview = yield* eventually(
              report(facilitator, "/overview"),
              ({ origins, total_transactions, unique_resources }) =>
                total_transactions === "3" && unique_resources === "1" && origins === "1"
            )
            const [fees] = yield* facilitator.sql<{
              fees: string
            }>`select sum(fee_charged_stroops)::text as fees from kernel_settlements`
            expect(overview).toMatchObject({
              days: 30,
              total_transactions: "3",
              successful_transactions: "3",
              failed_transactions: "0",
              unknown_transactions: "0",
              total_amount: "2007",
              ...usdc,
              amounts: [{ ...usdc, amount: "2007", transactions: "3" }],
              total_sponsored_fee_stroops: fees!.fees,
              unique_buyers: "2",
              unique_sellers: "2",
              unique_facilitators: "1",
              unique_networks: "1",
              unique_resources: "1",
              cataloged_resources: "1",
              active_resources: "1",
              stale_resources: "0",
              quarantined_resources: "0",
              origins: "1"
            })
            const record = yield* report(facilitator, `/transactions/${hash}`)
            expect(record).toMatchObject({
              network: "ledger:testnet",
              scheme: "exact",
              ...usdc,
              payer: payers[0]!.publicKey(),
              pay_to: payTo,
              max_amount: "1500",
              amount: "1500",
              transaction_hash: hash,
              status: "success",
              facilitator_id: "replica-a",
              resource_id: "1",
              resource_url: url,
              error_reason: null
            })
            expect(Number(record["fee_stroops"])).toBeGreaterThan(0)
            expect((yield* report(facilitator, "/resources"))["items"]).toMatchObject([
              {
                id: "1",
                status: "active",
                ownership: "provisional",
                version: 1,
                verification: "payment_observed",
                provenance: "seller_declared",
                tags: ["weather"],
                service_name: "Weather"
              }
            ])
            const detail = yield* report(facilitator, "/resources/1")
            expect(detail).toMatchObject({
              versions: [{ version: 1, pay_to: payTo }],
              payment_options: [{ amount: "1500", retired_at: null }],
              decisions: [{ move: "listed" }]
            })
            expect(yield* report(facilitator, "/resources/1/observability")).toMatchObject({
              all_time: { calls: "2", successes: "2", unique_buyers: "2", total_amount: "2000" },
              windows: { "1h": { calls: "2" }, "720h": { calls: "2" } }
            })
            expect((yield* report(facilitator, "/resources/1/invocations"))["items"]).toHaveLength(2)
            expect((yield* report(facilitator, "/origins"))["items"]).toMatchObject([
              {
                origin: "https://shop.example.com",
                resource_count: "1",
                active_count: "1",
                settlement_count: "2",
                successful_amount: "2000"
              }
            ])
            expect(
              (yield* report(facilitator, `/sellers/${payTo}/counterparties`))["items"]
                .map(({ address }: Json) => address)
                .sort()
            ).toEqual(payers.map((pair) => pair.publicKey()).sort())

            // Internal fields are not published.
            const discovery = (yield* facilitator.ask("/discovery/resources")).text
            for (const word of ['"id"', "provenance", "settlement_count", "decisions", "facilitator_id"])
              expect(discovery).not.toContain(word)

            const errorsOf = describedErrors((yield* facilitator.ask("/openapi.json")).json)
            const paths: ReadonlyArray<readonly [string, string]> = [
              ["/overview", "/overview"],
              ["/overview/timeseries", "/overview/timeseries?bucket=hour"],
              ["/overview/breakdowns", "/overview/breakdowns?days=1"],
              ["/volume/daily", "/volume/daily"],
              ["/transactions", "/transactions"],
              ["/transactions/{hash}", `/transactions/${hash}`],
              ["/transactions/{hash}", `/transactions/${"0".repeat(64)}`],
              ["/buyers", "/buyers"],
              ["/buyers/{address}", `/buyers/${payers[0]!.publicKey()}`],
              ["/buyers/{address}", `/buyers/${payTo}`],
              ["/buyers/{address}/transactions", `/buyers/${payers[1]!.publicKey()}/transactions`],
              ["/buyers/{address}/counterparties", `/buyers/${payers[1]!.publicKey()}/counterparties`],
              ["/sellers", "/sellers?days=7"],
              ["/sellers/{address}", `/sellers/${payTo}?days=0`],
              ["/sellers/{address}/transactions", `/sellers/${payTo}/transactions`],
              ["/sellers/{address}/counterparties", `/sellers/${payTo}/counterparties`],
              ["/origins", "/origins"],
              ["/resources", "/resources"],
              ["/resources/{id}", "/resources/1"],
              ["/resources/{id}", "/resources/2"],
              ["/resources/{id}/observability", "/resources/1/observability"],
              ["/resources/{id}/invocations", "/resources/1/invocations"],
              ["/overview/timeseries", "/overview/timeseries?bucket=week"]
            ]
            for (const [described, path] of paths)
              expect(errorsOf(`/analytics/v1${described}`, yield* facilitator.ask(`/analytics/v1${path}`))).toEqual([])
          })
        ),
      240_000
    )

    it.live(
      "an unresolved settlement is corrected once, in its hour and its day [S95, S96, S145, S146, S155]",
      () =>
        Effect.scoped(
          Effect.gen(function* () {
            const facilitator = yield* startFacilitator({
              database,
              closeMillis: 500,
              set: [quiet, "limits.settle_timeout_ms=1000", "limits.recovery_ms=1000"]
            })
            const payer = yield* facilitator.account(1_000n)
            const payTo = (yield* facilitator.account()).publicKey()
            // Each budget suffices until the other payment is taken, and the ledger accepts neither for now.
            const payments = [
              yield* facilitator.payment({ payer, payTo, amount: 800n, maxTimeoutSeconds: 300 }),
              yield* facilitator.payment({ payer, payTo, amount: 700n, maxTimeoutSeconds: 300 })
            ]
            yield* facilitator.ledger.setFaults([{ drops: () => true }])
            const answers = yield* Effect.forEach(payments, ({ body }) => facilitator.settle(body), {
              concurrency: "unbounded"
            })
            for (const { json } of answers)
              expect(json).toMatchObject({ success: false, errorReason: "settle_ledger_transaction_status_unknown" })
            const before = yield* eventually(
              report(facilitator, "/overview"),
              ({ total_transactions }) => total_transactions === "2"
            )
            expect(before).toMatchObject({
              total_transactions: "2",
              successful_transactions: "0",
              failed_transactions: "0",
              unknown_transactions: "2",
              total_amount: "0"
            })
            expect((yield* report(facilitator, "/transactions?status=unknown"))["items"]).toMatchObject([
              { status: "unknown", amount: null },
              { status: "unknown", amount: null }
            ])
            const days = Effect.map(report(facilitator, "/volume/daily"), ({ items }) =>
              items.map(({ status, total_transactions }: Json) => [status, total_transactions]).sort()
            )
            expect(yield* days).toEqual([["unknown", "2"]])
            yield* facilitator.ledger.setFaults([])
            const after = yield* eventually(
              report(facilitator, "/overview"),
              ({ unknown_transactions }) => unknown_transactions === "0"
            )
            expect(after).toMatchObject({
              total_transactions: "2",
              successful_transactions: "1",
              failed_transactions: "1",
              unknown_transactions: "0",
              first_activity: before["first_activity"],
              latest_activity: before["latest_activity"]
            })
            const items: ReadonlyArray<Json> = (yield* report(facilitator, "/transactions"))["items"]
            const [paid, failed] = [
              items.find(({ status }) => status === "success")!,
              items.find(({ status }) => status === "failed")!
            ]
            expect(after["total_amount"]).toBe(paid["amount"])
            expect(failed).toMatchObject({ amount: "0", error_reason: "settle_ledger_transaction_failed" })
            expect(Number(failed["fee_stroops"])).toBeGreaterThan(0)
            // A retry of the payment that succeeded is the same payment.
            yield* facilitator.settle(payments[paid["max_amount"] === "800" ? 0 : 1]!.body)
            // The day's rollup is corrected: nothing in it is unknown any more, and nothing is counted twice.
            expect(yield* days).toEqual([
              ["failed", "1"],
              ["success", "1"]
            ])
          })
        ),
      240_000
    )

    it.live(
      "payments settle when analytics cannot write, and reports catch up later [S143]",
      () =>
        Effect.scoped(
          Effect.gen(function* () {
            const facilitator = yield* startFacilitator({ database, closeMillis: 500, set: [quiet] })
            const payer = yield* facilitator.account()
            const payTo = (yield* facilitator.account()).publicKey()
            const pay = Effect.flatMap(
              facilitator.payment({ payer, payTo, amount: 5n, maxTimeoutSeconds: 300 }),
              ({ body }) => Effect.andThen(facilitator.verify(body), settled(facilitator, body))
            )
            const health = Effect.map(facilitator.ask("/health/ready"), ({ json }) => json as Json)
            yield* facilitator.sql`alter table analytics_totals rename to elsewhere`
            yield* facilitator.sql`alter table analytics_verifications rename to elsewhere_too`
            for (let payment = 0; payment < 3; payment++) yield* pay
            expect(yield* eventually(health, ({ analytics }) => analytics.state === "degraded")).toMatchObject({
              status: "ready",
              analytics: { state: "degraded" }
            })
            expect((yield* facilitator.ask("/metrics")).text).toMatch(/tollkeeper_analytics_failures_total\S* [1-9]/)
            expect((yield* facilitator.ask("/analytics/v1/overview")).status).toBe(503)
            yield* pay
            yield* facilitator.sql`alter table elsewhere rename to analytics_totals`
            yield* facilitator.sql`alter table elsewhere_too rename to analytics_verifications`
            const overview = yield* eventually(
              report(facilitator, "/overview"),
              ({ total_transactions, total_verifications }) => total_transactions === "4" && total_verifications === "4"
            )
            expect(overview).toMatchObject({ total_transactions: "4", total_amount: "20", total_verifications: "4" })
            expect(yield* eventually(health, ({ analytics }) => analytics.state === "ready")).toMatchObject({
              analytics: { state: "ready" }
            })
          })
        ),
      240_000
    )

    it.live(
      "sales of two tools on one endpoint are attributed by the catalog [S167]",
      () =>
        Effect.scoped(
          Effect.gen(function* () {
            const facilitator = yield* startFacilitator({ database, closeMillis: 500, set: [quiet] })
            const payer = yield* facilitator.account()
            const payTo = (yield* facilitator.account()).publicKey()
            const endpoint = "https://tools.example.com/mcp"
            const hashes: Array<string> = []
            for (const tool of ["add", "subtract"]) {
              const body = yield* declaring(facilitator, {
                payer,
                payTo,
                url: endpoint,
                extension: mcpDeclaration(tool)
              })
              yield* verified(facilitator, body)
              hashes.push(yield* settled(facilitator, body))
            }
            const { items } = yield* report(facilitator, "/resources")
            for (const [at, tool] of ["add", "subtract"].entries()) {
              const record = yield* eventually(
                report(facilitator, `/transactions/${hashes[at]}`),
                ({ resource_id }) => typeof resource_id === "string"
              )
              expect(record["resource_id"]).toBe(items.find((one: Json) => one.tool_name === tool).id)
              expect(
                (yield* report(facilitator, `/resources/${record["resource_id"]}/invocations`))["items"]
              ).toMatchObject([{ transaction_hash: hashes[at] }])
            }
          })
        ),
      240_000
    )

    it.live(
      "only completed verifications are counted, valid and refused [S145]",
      () =>
        Effect.scoped(
          Effect.gen(function* () {
            const facilitator = yield* startFacilitator({ database, closeMillis: 500, set: [quiet] })
            const payer = yield* facilitator.account()
            const payTo = (yield* facilitator.account()).publicKey()
            const { body } = yield* facilitator.payment({ payer, payTo, amount: 5n, maxTimeoutSeconds: 300 })
            for (let count = 0; count < 3; count++) expect((yield* facilitator.verify(body)).json.isValid).toBe(true)
            const wrong = yield* facilitator.payment({
              payer,
              payTo,
              amount: 5n,
              maxTimeoutSeconds: 300,
              tamper: { amount: 4n }
            })
            expect((yield* facilitator.verify(wrong.body)).json.isValid).toBe(false)
            yield* facilitator.verify("{")
            yield* settled(facilitator, body)
            yield* eventually(report(facilitator, "/overview"), ({ total_transactions }) => total_transactions === "1")
            expect(
              yield* eventually(
                report(facilitator, "/overview"),
                ({ total_verifications }) => total_verifications === "4"
              )
            ).toMatchObject({ total_verifications: "4", valid_verifications: "3" })
          })
        ),
      240_000
    )

    it.live(
      "addresses are replaced by pseudonyms when configured; hashes and URLs are not [S138, S139, S140, S257, S297]",
      () =>
        Effect.scoped(
          Effect.gen(function* () {
            const facilitator = yield* startFacilitator({
              database,
              closeMillis: 500,
              set: [quiet, "analytics.redact_addresses=true"]
            })
            const [payer, other] = [yield* facilitator.account(), yield* facilitator.account()]
            const [payTo, squatter] = [
              (yield* facilitator.account()).publicKey(),
              (yield* facilitator.account()).publicKey()
            ]
            const reported = `${url}/${payTo}`
            const body = yield* declaring(facilitator, {
              payer,
              payTo,
              url: reported,
              amount: 1_500n,
              extension: queryDeclaration({ input: { city: payTo } })
            })
            yield* verified(facilitator, body)
            const hash = yield* settled(facilitator, body)
            // Another recipient's claim to the same URL, and a rejected declaration.
            yield* verified(
              facilitator,
              yield* declaring(facilitator, { payer: other, payTo: squatter, url: reported })
            )
            yield* eventually(report(facilitator, "/transactions"), ({ items }) => items[0]?.resource_id === "1")
            yield* eventually(report(facilitator, "/resources/1"), ({ observations }) => observations.length > 1)
            const record = yield* report(facilitator, `/transactions/${hash}`)
            expect(record).toMatchObject({
              transaction_hash: hash,
              resource_url: reported,
              payer: expect.stringMatching(/^p_[0-9a-f]{24}$/),
              pay_to: expect.stringMatching(/^p_[0-9a-f]{24}$/)
            })
            const [buyer, seller] = [record["payer"], record["pay_to"]]
            for (const path of [
              "/transactions",
              `/transactions/${hash}`,
              "/buyers",
              "/sellers",
              `/buyers/${buyer}`,
              `/buyers/${buyer}/transactions`,
              `/buyers/${buyer}/counterparties`,
              `/sellers/${seller}`,
              `/sellers/${seller}/transactions`,
              `/sellers/${seller}/counterparties`,
              "/resources",
              "/resources/1",
              "/resources/1/invocations",
              "/origins",
              `/transactions?payer=${buyer}&payTo=${seller}`
            ]) {
              const { status, text } = yield* facilitator.ask(`/analytics/v1${path}`)
              expect([path, status]).toEqual([path, 200])
              for (const address of [payer.publicKey(), other.publicKey(), squatter])
                expect([path, text.includes(address)]).toEqual([path, false])
              // The URL contains the recipient's address, but is not an address.
              expect([path, text.replaceAll(reported, "").includes(payTo)]).toEqual([path, false])
            }
            expect((yield* report(facilitator, `/transactions?payer=${buyer}&payTo=${seller}`))["items"]).toHaveLength(
              1
            )
            expect((yield* report(facilitator, `/transactions?payer=p_${"0".repeat(24)}`))["items"]).toEqual([])
            expect((yield* facilitator.ask(`/analytics/v1/buyers/p_${"0".repeat(24)}`)).status).toBe(404)
            expect(yield* report(facilitator, `/buyers/${payer.publicKey()}`)).toMatchObject({
              address: buyer,
              successful_amount: "1500"
            })
            expect((yield* report(facilitator, "/resources/1"))["claims"]).toHaveLength(1)
          })
        ),
      240_000
    )
  })
}

it.live.skipIf(!databaseKinds.includes("postgres"))(
  "a flood of reports is limited and queued; excess requests get Retry-After [S143]",
  () =>
    Effect.scoped(
      Effect.gen(function* () {
        const facilitator = yield* startFacilitator({
          database: "postgres",
          closeMillis: 500,
          set: [quiet, "database.max_connections=8"]
        })
        const payer = yield* facilitator.account()
        const payTo = (yield* facilitator.account()).publicKey()
        const { body } = yield* facilitator.payment({ payer, payTo, amount: 5n, maxTimeoutSeconds: 300 })
        const held = yield* Deferred.make<void>()
        const release = yield* Deferred.make<void>()
        // Reports wait for as long as another session locks their table.
        yield* Effect.forkScoped(
          facilitator.sql.withTransaction(
            Effect.gen(function* () {
              yield* facilitator.sql`lock table analytics_member_days in access exclusive mode`
              yield* Deferred.succeed(held, undefined)
              yield* Deferred.await(release)
            })
          )
        )
        yield* Deferred.await(held)
        let answered = 0
        const flood = yield* Effect.forkScoped(
          Effect.forEach(
            Array.from({ length: 160 }),
            () => Effect.tap(facilitator.ask("/analytics/v1/overview"), () => Effect.sync(() => void answered++)),
            { concurrency: "unbounded" }
          )
        )
        // Beyond 4,000 points in progress, 50 a report, requests are refused immediately; all others hold their place.
        yield* eventually(Effect.sync(() => answered >= 83))
        expect((yield* facilitator.verify(body)).json).toMatchObject({ isValid: true })
        yield* settled(facilitator, body)
        yield* Deferred.succeed(release, undefined)
        const statuses = (yield* Fiber.join(flood)).map(({ status }) => status)
        expect([200, 503].map((status) => statuses.filter((one) => one === status).length)).toEqual([77, 83])
      })
    ),
  240_000
)

it.live(
  "reports require a configured key, bound their pages and name invalid parameters [S134, S135, S136, S142, S242, S298, S329]",
  () =>
    Effect.scoped(
      Effect.gen(function* () {
        const key = "caller:a-secret-of-a-caller"
        const facilitator = yield* startFacilitator({
          closeMillis: 500,
          // Without operator keys, operator routes are open to this machine.
          environment: { FACILITATOR_API_KEYS: key, OPERATOR_API_KEYS: "ops:a-secret-of-an-operator" },
          set: [quiet, "server.host=127.0.0.1", "analytics.default_page_size=2", "analytics.max_page_size=3"]
        })
        const headers = { authorization: "Bearer a-secret-of-a-caller" }
        const ask = (path: string) => facilitator.ask(`/analytics/v1${path}`, { headers })
        const payers = yield* Effect.forEach([1, 2, 3, 4], () => facilitator.account())
        const payTo = (yield* facilitator.account()).publicKey()
        for (const payer of payers) {
          const { body } = yield* facilitator.payment({ payer, payTo, amount: 5n, maxTimeoutSeconds: 300 })
          expect((yield* facilitator.settle(body, headers)).json).toMatchObject({ success: true })
        }
        yield* eventually(
          Effect.map(ask("/overview"), ({ json }) => json as Json),
          ({ total_transactions }) => total_transactions === "4"
        )
        const document: Json = (yield* facilitator.ask("/openapi.json")).json
        const paths = Object.keys(document["paths"]).filter((path) => path.startsWith("/analytics/v1"))
        expect(paths.length).toBeGreaterThanOrEqual(22)
        for (const path of paths) {
          const concrete = path.replace("{hash}", "0".repeat(64)).replace("{address}", payTo).replace("{id}", "1")
          for (const init of [{}, { headers: { authorization: "Bearer of-another-caller-entirely" } }]) {
            const { headers, json, status } = yield* facilitator.ask(concrete, init)
            expect([path, status, headers.get("www-authenticate"), json]).toEqual([
              path,
              401,
              "Bearer",
              { error: "unauthorized" }
            ])
          }
        }
        const page = (query: string) =>
          Effect.map(ask(`/transactions${query}`), ({ json }) => [json.items.length, json.pagination])
        expect(yield* page("")).toEqual([2, { limit: 2, offset: 0, total: 4 }])
        expect(yield* page("?limit=1000")).toEqual([3, { limit: 3, offset: 0, total: 4 }])
        expect(yield* page("?limit=0&offset=3")).toEqual([1, { limit: 1, offset: 3, total: 4 }])
        expect(yield* page("?offset=999999999")).toEqual([0, { limit: 2, offset: 999_999_999, total: 4 }])
        for (const [query, days] of [
          ["", 30],
          ["?days=0", 0],
          ["?days=1", 1],
          ["?days=7", 7],
          ["?days=14", 14],
          ["?days=30", 30],
          ["?days=2", 30],
          ["?days=-1", 30],
          ["?days=x", 30],
          ["?days=", 30]
        ] as const) {
          expect([query, (yield* ask(`/overview${query}`)).json.days]).toEqual([query, days])
        }
        const wrong = [
          "/transactions/xyz",
          "/transactions?payer=x",
          "/transactions?status=settled",
          "/transactions?resourceId=0",
          "/transactions?limit=x&offset=-1",
          "/buyers/x",
          "/sellers/x/transactions",
          "/resources/x",
          "/resources/0/observability",
          "/resources/1e3/invocations",
          "/overview?asset=a%20b",
          "/overview/timeseries?bucket=week",
          "/transactions?network=%27"
        ]
        for (const path of wrong) {
          const { json, status } = yield* ask(path)
          expect([path, status, json.error]).toEqual([path, 400, "invalid_parameter"])
          expect(json.details.length).toBe(path.includes("limit") ? 2 : 1)
        }
        for (const path of [
          `/transactions/${"0".repeat(64)}`,
          `/buyers/${payTo}`,
          `/buyers/${payTo}/transactions`,
          `/sellers/${payers[0]!.publicKey()}/counterparties`,
          "/resources/1",
          "/resources/1/observability",
          "/resources/1/invocations"
        ]) {
          const { json, status } = yield* ask(path)
          expect([path, status, json]).toEqual([path, 404, { error: "not_found" }])
        }
      })
    ),
  240_000
)
