// One question for one invocation: events between the question, its answer and its payment.
import { NodeServices } from "@effect/platform-node"
import { expect, it, layer } from "@effect/vitest"
import { Effect, FileSystem, Layer, Option } from "effect"
import { SqlClient } from "effect/sql"
import { Network } from "../../../kernel/config/Network.ts"
import { Settings } from "../../../kernel/config/Settings.ts"
import { Host } from "../../../kernel/platform/Host.ts"
import { StoreDatabase } from "../../../plugins/mcp-tools-pay/budget/StoreDatabase.ts"
import type { Invocation } from "../../../plugins/mcp-tools-pay/call/Invocation.ts"
import { Config } from "../../../plugins/mcp-tools-pay/Config.ts"
import { Approvals } from "../../../plugins/mcp-tools-pay/policy/Approvals.ts"
import { Policy } from "../../../plugins/mcp-tools-pay/policy/Policy.ts"
import * as NodeCrypto from "../../../runtime/platform/nodeCrypto.ts"
import { describeDatabases } from "../../support/databases.ts"
import { eventually } from "../../support/eventually.ts"
import { call, connectHttp } from "../mcp-tools/support.ts"
import { agentKey, pay, PayWorld } from "./payWorld.ts"
import { layerTest } from "../../support/layerTest.ts"

layer(PayWorld.layer, { excludeTestServices: true, timeout: 240_000 })("a question", (it) => {
  it.effect("the person is asked once though the seller redeclares its listing meanwhile", () =>
    Effect.gen(function* () {
      const { paying, ref, toolsUrl } = yield* PayWorld
      const rule = { name: "dear", above: 1_999, outcome: "approve" }
      const url = yield* toolsUrl([`policy.rules=${JSON.stringify([rule])}`])
      const client = yield* connectHttp(url, agentKey.split(":")[1])
      const own = { a: 1, b: 2 }
      const first = (yield* pay(client, ref, own)).body["details"].approval
      const version = Effect.map(call(client, "x402_get_resource", { ref }), ({ body }) => body["wrapper"].versionHash)
      const before = yield* version
      // Another agent's payment carries the seller's own declaration, which also names its content type.
      expect((yield* pay(yield* paying(), ref, { a: 3, b: 4 })).body["receipt"]?.status).toBe("settled")
      yield* eventually(version, (now) => now !== before)
      expect((yield* pay(client, ref, own)).body["details"].approval).toEqual(first)
    }).pipe(Effect.scoped)
  )
})

const invocation: Invocation = {
  key: "call",
  ref: "v1.ref",
  versionHash: "v",
  option: {
    scheme: "exact",
    network: "ledger:testnet",
    asset: "CUSDC",
    amount: 10n,
    payTo: "GSELLER",
    maxTimeoutSeconds: 60,
    feesSponsored: true,
    extra: "{}",
    sent: {}
  },
  about: { kind: "http", origin: "https://seller.example", grade: "provisional" },
  bought: { title: "Adds", action: "GET /add", arguments: {} }
}

/** Two processes of the tool server, each with its policy, and the number of questions to their person. */
const twoPolicies = Effect.fnUntraced(function* (shared: unknown) {
  const stateFolder = yield* (yield* FileSystem.FileSystem).makeTempDirectoryScoped()
  const ground = Layer.mergeAll(
    NodeServices.layer,
    NodeCrypto.layer,
    Config.layer.pipe(Layer.provide(Settings.layerTest({ policy: { otherwise: "approve" } }, () => Option.none()))),
    Layer.succeed(Host, { name: "test", stateFolder }),
    layerTest(Network, { assets: new Map() }),
    Layer.succeed(StoreDatabase, { shared } as never)
  )
  const one = Policy.layer.pipe(Layer.provide(Approvals.layer), Layer.provide(ground))
  const policies = yield* Effect.forEach([one, one], (layer) => Effect.provide(Policy, Layer.fresh(layer)))
  let asked = 0
  const caller = { principal: "stdio", session: "s", ask: () => Effect.sync(() => ++asked > 0) }
  return {
    asked: () => asked,
    verify: (at: number, made = 0) => policies[at]!.verify(invocation, caller, made)
  }
})

/** The first call has its approval and is at the seller: nothing is reserved yet. */
const facts = (shared: unknown) =>
  Effect.gen(function* () {
    const { asked, verify } = yield* twoPolicies(shared)
    const giveBack = yield* verify(0)
    expect(asked()).toBe(1)
    const call = (at: number, made?: number) => Effect.asVoid(verify(at, made))
    for (const at of [0, 1]) yield* call(at)
    expect(asked()).toBe(1)
    // It led to no payment, and the identical call continues with the same approval.
    yield* giveBack
    yield* call(0)
    yield* call(1)
    expect(asked()).toBe(1)
    // The next payment asks again.
    yield* call(1, 1)
    expect(asked()).toBe(2)
  }).pipe(Effect.scoped)

it.live("a second call during the approved payment does not ask again", () =>
  Effect.provide(facts(undefined), NodeServices.layer)
)

describeDatabases(
  "a question in",
  (database) => {
    it.live("two processes ask once while the approved call is at its seller", () =>
      Effect.gen(function* () {
        yield* facts(yield* Effect.context<SqlClient.SqlClient>())
      }).pipe(Effect.provide(Layer.merge(database, NodeServices.layer)))
    )
  },
  ["mcp-tools"]
)
