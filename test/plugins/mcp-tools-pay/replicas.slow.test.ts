// Two tool servers as an operator runs them, each a separate process, over one PostgreSQL: reservations, requests and
// approvals of one are visible to the other.
import type { Client } from "@modelcontextprotocol/sdk/client/index.js"
import { expect, layer } from "@effect/vitest"
import { Context, Effect, Layer, Redacted } from "effect"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import process from "node:process"
import { DatabaseSource } from "../../../kernel/database/DatabaseSource.ts"
import { startProgram } from "../../conformance/programs.ts"
import { databaseKinds, sourceLayer } from "../../support/databases.ts"
import { freePort } from "../../support/freePort.ts"
import { call, connectHttp, type Called, type Json } from "../mcp-tools/support.ts"
import { pay, payingSet, PayWorld, sealed } from "./payWorld.ts"
import { amount } from "./seller.ts"

const root = new URL("../../../", import.meta.url).pathname
const keys = { racer: "0123456789abcdef", asker: "123456789abcdef0", twin: "23456789abcdef01" }
const operatorKey = "0f1e2d3c4b5a6978"
const readyMillisMax = 120_000
let fresh = 0
/** Unique arguments, so that no two calls are identical. */
const args = () => ({ a: ++fresh, b: 70_000 })

/** A server of a replica set; its address once it is ready. */
const startReplica = Effect.fnUntraced(function* (databaseUrl: string) {
  const { agent, facilitator } = yield* PayWorld
  const { file, key } = sealed(agent.secret())
  const port = yield* Effect.promise(freePort)
  const state = mkdtempSync(join(tmpdir(), "tollkeeper-replica-"))
  yield* Effect.addFinalizer(() => Effect.sync(() => rmSync(state, { recursive: true, force: true })))
  const set = [
    ...payingSet(facilitator),
    "transport=http",
    `http.port=${port}`,
    "http.host=127.0.0.1",
    `facilitator.base_url=${facilitator.url}`,
    "signer.mode=encrypted-key",
    `signer.keystore_file=${file}`,
    "budget.store=postgres",
    "budget.replay_seconds=0",
    `budget.max_per_day=${3n * amount}`,
    'policy.rules=[{name: asked, agents: ["key:asker"], outcome: approve}]'
  ]
  const words = ["runtime/cli.ts", "tools", "--state", state, ...set.flatMap((one) => ["--set", one])]
  const program = yield* Effect.acquireRelease(
    Effect.sync(() =>
      startProgram(process.execPath, words, {
        cwd: root,
        env: {
          DATABASE_URL: databaseUrl,
          TOOLS_KEYSTORE_KEY: key,
          TOOLS_API_KEYS: Object.entries(keys)
            .map((one) => one.join(":"))
            .join(","),
          OPERATOR_API_KEYS: `boss:${operatorKey}`
        }
      })
    ),
    (program) => Effect.promise(() => program.stop())
  )
  const url = `http://127.0.0.1:${port}`
  yield* Effect.promise(async () => {
    const until = performance.now() + readyMillisMax
    while (
      !(await fetch(`${url}/readyz`).then(
        ({ ok }) => ok,
        () => false
      ))
    ) {
      if (performance.now() > until) throw new Error(`the tool server was not ready\n${program.tail()}`)
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
  })
  return url
})

class Replicas extends Context.Service<Replicas, { readonly urls: readonly [string, string] }>()("test/Replicas") {
  static readonly layer = Layer.effect(
    Replicas,
    Effect.gen(function* () {
      const opened = yield* (yield* DatabaseSource).open
      if (opened.kind !== "server") return yield* Effect.die(new Error("replicas need a server"))
      const database = Redacted.value(opened.url)
      // Started concurrently, so that they also migrate one database concurrently.
      const urls = yield* Effect.all([startReplica(database), startReplica(database)], { concurrency: 2 })
      return { urls }
    })
  ).pipe(Layer.provide(sourceLayer("postgres")), Layer.provideMerge(PayWorld.layer))
}

/** A client of each. */
const both = (key: string) =>
  Effect.flatMap(Replicas, ({ urls }) => Effect.all([connectHttp(urls[0], key), connectHttp(urls[1], key)]))

/** The same or different calls, spread over both, all concurrently. */
const spread = (clients: ReadonlyArray<Client>, ref: string, count: number, argsOf: () => Json) =>
  Effect.all(
    Array.from({ length: count }, (_, i) => pay(clients[i % clients.length]!, ref, argsOf())),
    { concurrency: "unbounded" }
  )

const outcomes = (all: ReadonlyArray<Called>) => all.map(({ body }) => body["receipt"]?.status ?? body["code"]).sort()
const identifiers = (all: ReadonlyArray<Called>) =>
  new Set(all.flatMap(({ body }) => body["receipt"]?.paymentIdentifier ?? []))

layer(Replicas.layer, {
  excludeTestServices: true,
  timeout: 2 * readyMillisMax
})("two tool servers over one PostgreSQL", (it) => {
  const onServer = it.effect.skipIf(!databaseKinds.includes("postgres"))

  /** The amount that the agent's account pays. */
  const spentBy = Effect.fnUntraced(function* <A, E, R>(effect: Effect.Effect<A, E, R>) {
    const { agent, facilitator } = yield* PayWorld
    const before = yield* facilitator.balance(agent.publicKey())
    const result = yield* effect
    return { result, spent: before - (yield* facilitator.balance(agent.publicKey())) }
  })

  onServer(
    "two replicas share one budget, so racing calls never exceed it [S211, S217, S303]",
    () =>
      Effect.gen(function* () {
        const { ref } = yield* PayWorld
        const clients = yield* both(keys.racer)
        const { result, spent } = yield* spentBy(spread(clients, ref, 8, args))
        expect(outcomes(result)).toEqual([
          ...Array.from({ length: 5 }, () => "BUDGET_EXCEEDED"),
          ...Array.from({ length: 3 }, () => "settled")
        ])
        expect(spent).toBe(3n * amount)
        expect(outcomes(yield* spread(clients, ref, 2, args))).toEqual(["BUDGET_EXCEEDED", "BUDGET_EXCEEDED"])
      }).pipe(Effect.scoped),
    240_000
  )

  onServer(
    "two replicas honor an approval once for concurrent calls",
    () =>
      Effect.gen(function* () {
        const { ref } = yield* PayWorld
        const { urls } = yield* Replicas
        const clients = yield* both(keys.asker)
        const own = args()
        const { id } = (yield* pay(clients[0]!, ref, own)).body["details"].approval
        expect((yield* pay(clients[1]!, ref, own)).body["details"].approval).toMatchObject({ id, state: "pending" })
        const granted = yield* Effect.promise(() =>
          fetch(`${urls[1]}/approvals/${id}`, {
            method: "POST",
            headers: { authorization: `Bearer ${operatorKey}`, "content-type": "application/json" },
            body: JSON.stringify({ decision: "approve" })
          })
        )
        expect(granted.status).toBe(200)
        const { result, spent } = yield* spentBy(spread(clients, ref, 4, () => own))
        expect(identifiers(result).size).toBe(1)
        expect(spent).toBe(amount)
        // Used up at both: once its answer is acknowledged, the same call waits for a person again.
        for (const client of clients) yield* call(client, "x402_search_resources", {})
        for (const client of clients)
          expect((yield* pay(client, ref, own)).body).toMatchObject({
            code: "PAYMENT_REJECTED",
            details: { approval: { state: "pending" } }
          })
      }).pipe(Effect.scoped),
    240_000
  )

  onServer(
    "two replicas pay once for the same concurrent call [S212, S232]",
    () =>
      Effect.gen(function* () {
        const { ref, seller } = yield* PayWorld
        const clients = yield* both(keys.twin)
        const own = args()
        const calls = seller.calls.length
        const { result, spent } = yield* spentBy(spread(clients, ref, 6, () => own))
        expect(identifiers(result).size).toBe(1)
        for (const { body, isError } of result) if (isError) expect(body["code"]).toBe("SETTLEMENT_UNKNOWN")
        expect(spent).toBe(amount)
        expect(seller.calls.slice(calls).filter(({ payment }) => payment !== undefined)).toHaveLength(1)
      }).pipe(Effect.scoped),
    240_000
  )
})
