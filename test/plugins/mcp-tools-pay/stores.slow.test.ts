import { expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { execFileSync } from "node:child_process"
import { mkdtempSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import process from "node:process"
import { declaring, mcpDeclaration, verified } from "../catalog/support.ts"
import { databaseKinds, sourceLayer } from "../../support/databases.ts"
import { pay, payingSet, PayWorld, sealed } from "./payWorld.ts"
import { amount, inputSchema } from "./seller.ts"
import { call, connectHttp, startTools } from "../mcp-tools/support.ts"

const root = new URL("../../../", import.meta.url).pathname
const args = { a: 1, b: 2 }

layer(PayWorld.layer, { excludeTestServices: true, timeout: 240_000 })("the store of a budget", (it) => {
  const started = Effect.fnUntraced(function* (kind: "pglite" | "postgres", set: ReadonlyArray<string> = []) {
    const { agent, facilitator } = yield* PayWorld
    const { file, key } = sealed(agent.secret())
    return yield* startTools({
      facilitatorUrl: facilitator.url,
      database: sourceLayer(kind),
      set: [
        ...payingSet(facilitator),
        "signer.mode=encrypted-key",
        `signer.keystore_file=${file}`,
        "budget.store=postgres",
        ...set
      ],
      environment: { TOOLS_KEYSTORE_KEY: key, TOOLS_API_KEYS: "0123456789abcdef" }
    })
  })

  it.effect("payment storage refuses the embedded database and requires a PostgreSQL server [S303]", () =>
    Effect.gen(function* () {
      expect(yield* Effect.flip(started("pglite"))).toMatchObject({ _tag: "SettingsRefused", path: "budget.store" })
    }).pipe(Effect.scoped)
  )

  it.effect.skipIf(!databaseKinds.includes("postgres"))(
    "a tool server migrates and uses its own PostgreSQL for payments [S303]",
    () =>
      Effect.gen(function* () {
        const { ref, seller } = yield* PayWorld
        seller.behaviour = {}
        const client = yield* connectHttp(yield* started("postgres", ["budget.max_per_day=2000"]), "0123456789abcdef")
        expect((yield* pay(client, ref, { a: 7, b: 1 })).body["receipt"].status).toBe("settled")
        expect((yield* pay(client, ref, { a: 7, b: 2 })).body["code"]).toBe("BUDGET_EXCEEDED")
      }).pipe(Effect.scoped),
    240_000
  )

  it.effect(
    "the budget store lets an operator list and decide held payments [S104]",
    () =>
      Effect.gen(function* () {
        const { paying, ref, seller } = yield* PayWorld
        const folder = mkdtempSync(join(tmpdir(), "tollkeeper-budget-"))
        // Nothing reaches the ledger, so the reservation is still held when the operator lists it.
        seller.behaviour = {
          settle: () =>
            Promise.resolve({
              success: false,
              transaction: "",
              network: "ledger:testnet",
              errorReason: "settlement_pending"
            })
        }
        const held = yield* Effect.scoped(
          Effect.flatMap(paying(["budget.store=file"], undefined, folder), (client) => pay(client, ref, args))
        )
        const id = held.body["details"].paymentIdentifier as string
        seller.behaviour = {}
        const operator = (...words: ReadonlyArray<string>) =>
          execFileSync(
            process.execPath,
            [
              "--disable-warning=ExperimentalWarning",
              join(root, "runtime/cli.ts"),
              "tools-budget",
              ...words,
              "--state",
              folder
            ],
            { encoding: "utf8" }
          )
        expect(operator("list")).toMatch(
          new RegExp(`^${id}  unknown .* key:agent  2000 of C.* until ledger \\d+\n1 held`)
        )
        expect(operator("resolve", id, "released", "--reason", "a drill")).toContain(`${id} is released`)
        expect(operator("list")).toBe("0 held\n")
      }).pipe(Effect.scoped),
    240_000
  )
})

layer(PayWorld.layer, { excludeTestServices: true, timeout: 240_000 })("a symbolic name", (it) => {
  it.effect(
    "a symbolic name is connected to only where the operator maps it [S207]",
    () =>
      Effect.gen(function* () {
        const { facilitator, paying, seller } = yield* PayWorld
        const name = "mcp://adder/add"
        const lister = yield* facilitator.account()
        yield* verified(
          facilitator,
          yield* declaring(facilitator, {
            payer: lister,
            payTo: seller.payTo,
            url: name,
            extension: mcpDeclaration("add", { inputSchema }),
            amount
          })
        )
        const reader = yield* paying()
        const listed = (yield* call(reader, "x402_search_resources", { type: "mcp" })).body["resources"]
        const { wrapper } = listed.find(
          ({ resource }: { resource: { resource: string } }) => resource.resource === name
        )
        seller.behaviour = { challenge: (challenge) => ({ ...challenge, resource: { url: name } }) }
        const methods = seller.methods.length
        expect((yield* pay(reader, wrapper.ref)).body["code"]).toBe("UNTRUSTED_REDIRECT")
        expect(seller.methods.length).toBe(methods)
        const resolved = yield* paying([`network_security.resolved_mcp_endpoints={"${name}": "${seller.url}"}`])
        expect((yield* pay(resolved, wrapper.ref)).body["receipt"].status).toBe("settled")
        seller.behaviour = {}
      }).pipe(Effect.scoped),
    240_000
  )
})
