// Pubnet: a tool server starts when every condition holds, and is refused with a separate message for each that does
// not. No ledger is queried.
import { expect, it } from "@effect/vitest"
import { Keypair } from "@stellar/stellar-sdk"
import { Effect, Layer } from "effect"
import { describe } from "vitest"
import { sentenceOf } from "../../../runtime/sentence.ts"
import { databaseKinds, sourceLayer } from "../../support/databases.ts"
import { listedResource, pageOf, substituteJson, startTools } from "../mcp-tools/support.ts"
import { sealed } from "./payWorld.ts"

const keystore = sealed(Keypair.random().secret())

const conditions = [
  "plugins=[mcp-tools, mcp-tools-pay]",
  "networks.ledger:testnet.enabled=false",
  "networks.ledger:pubnet.enabled=true",
  'networks.ledger:pubnet.rpc_urls=["https://rpc.example"]',
  "signer.mode=encrypted-key",
  `signer.keystore_file=${keystore.file}`,
  "budget.store=postgres"
]

interface Departure {
  readonly set?: ReadonlyArray<string>
  readonly environment?: Record<string, string>
}

const start = Effect.fnUntraced(function* ({ environment = {}, set = [] }: Departure) {
  const facilitatorUrl = yield* substituteJson(pageOf(listedResource()))
  return yield* startTools({
    facilitatorUrl,
    set: [...conditions, ...set],
    environment: {
      TOOLS_API_KEYS: "agent:0123456789abcdef",
      TOOLS_KEYSTORE_KEY: keystore.key,
      DATABASE_URL: "postgres://here",
      ...environment
    },
    database: databaseKinds.includes("postgres") ? Layer.fresh(sourceLayer("postgres")) : undefined
  })
})

const refusalOf = (departure: Departure) =>
  Effect.map(Effect.exit(Effect.scoped(start(departure))), (exit) =>
    exit._tag === "Success" ? "it starts" : (sentenceOf(exit.cause) ?? "a defect")
  )

const without: ReadonlyArray<readonly [what: string, departure: Departure, sentence: RegExp]> = [
  ["a transport that identifies agents", { set: ["transport=stdio"] }, /transport must be http/],
  ["agents with keys", { environment: { TOOLS_API_KEYS: " , " } }, /no agent has a key; list .* TOOLS_API_KEYS/],
  ["a signer", { set: ["signer.mode=none"] }, /signer\.mode is none; set external or encrypted-key/],
  ["a budget in postgres", { set: ["budget.store=file"] }, /budget\.store must be postgres/],
  [
    "a PostgreSQL server",
    { environment: { DATABASE_URL: "" } },
    /budget\.store must be postgres, with its server in DAT/
  ]
]

describe("a tool server on pubnet", () => {
  for (const [what, departure, sentence] of without)
    it.effect(`pubnet payment is refused without ${what}, the only error reported [S284]`, () =>
      Effect.gen(function* () {
        const said = yield* refusalOf(departure)
        expect(said).toMatch(sentence)
        expect(said).toMatch(/may not serve pubnet: \(1\) /)
        expect(said).not.toMatch(/\(2\)/)
      })
    )

  it.effect("pubnet must be enabled by name and as the only network [S284]", () =>
    Effect.gen(function* () {
      const both = yield* refusalOf({ set: ["networks.ledger:testnet.enabled=true"] })
      expect(both).toMatch(/networks\.ledger:pubnet: one process serves/)
    })
  )

  it.effect("pubnet refusal lists everything that is missing [S284]", () =>
    Effect.gen(function* () {
      const said = yield* refusalOf({
        set: ["transport=stdio", "signer.mode=none", "budget.store=memory"],
        environment: { TOOLS_API_KEYS: "" }
      })
      expect(said).toMatch(/\(1\) transport.*\(2\) no agent.*\(3\) signer.*\(4\) budget/)
    })
  )

  it.live.skipIf(!databaseKinds.includes("postgres"))(
    "pubnet payment starts and is ready when every condition holds [S284]",
    () =>
      Effect.gen(function* () {
        const url = yield* start({})
        const healthz = yield* Effect.promise(() => fetch(`${url}/healthz`).then((answer) => answer.json()))
        expect(healthz).toMatchObject({ status: "ok", payments: "ready", networks: ["ledger:pubnet"] })
      }).pipe(Effect.scoped),
    240_000
  )
})
