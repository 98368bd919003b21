// Pubnet: a process for it starts only if every condition holds, and lists all unmet ones in one error. The ledger here
// is an embedded one with pubnet's passphrase, which no profile and no command can configure.
import { expect, layer } from "@effect/vitest"
import { NodeServices } from "@effect/platform-node"
import { Asset, Keypair } from "@stellar/stellar-sdk"
import { Context, Deferred, Effect, Exit, Fiber, FileSystem, Layer, References } from "effect"
import { passphrases } from "../../../kernel/config/Network.ts"
import { DatabaseSource } from "../../../kernel/database/DatabaseSource.ts"
import { ChannelPool } from "../../../kernel/settlement/channels/ChannelPool.ts"
import { OpensChannels } from "../../../kernel/settlement/PubnetGate.ts"
import { Supervisor } from "../../../kernel/actor/Supervisor.ts"
import { configDefaults } from "../../../plugins/ledger-local/Config.ts"
import { LocalLedger } from "../../../plugins/ledger-local/LocalLedger.ts"
import { USDC_ISSUER } from "../../../plugins/ledger-local/node/accounts.ts"
import { serve as serveLedger } from "../../../plugins/ledger-local/serve.ts"
import * as NodeCrypto from "../../../runtime/platform/nodeCrypto.ts"
import * as NodeDeadline from "../../../runtime/platform/nodeDeadline.ts"
import * as NodeListeners from "../../../runtime/platform/nodeListeners.ts"
import { loadProfile } from "../../../runtime/profile.ts"
import { sentenceOf } from "../../../runtime/sentence.ts"
import { serve } from "../../../runtime/serve.ts"
import { makePayment } from "../../../runtime/redteam/buyer.ts"
import { databaseKinds, sourceLayer } from "../../support/databases.ts"
import { rpcCall } from "../../../runtime/redteam/rpcCall.ts"

const passphrase = passphrases["ledger:pubnet"]
const usdcContract = new Asset("USDC", USDC_ISSUER).contractId(passphrase)
const key = "0123456789abcdef0123"
const sponsor = Keypair.random()

/** A ledger that closes automatically and takes another passphrase than the test network's. */
class Ledger extends Context.Service<Ledger, { readonly url: string; readonly fund: LocalLedger["Service"]["fund"] }>()(
  "test/Ledger"
) {
  static readonly layer = (passphrase: string) =>
    Layer.effect(
      Ledger,
      Effect.gen(function* () {
        const { fund } = yield* LocalLedger
        const { url } = yield* serveLedger({ ...configDefaults, port: 0, httpsPort: undefined, close: 200 }, "")
        return { url, fund }
      })
    ).pipe(
      Layer.provide([LocalLedger.layerTest({ passphrase, close: 200 }), Supervisor.layer, NodeListeners.layer]),
      Layer.provide([NodeCrypto.layer, NodeDeadline.layer, NodeServices.layer])
    )
}

/** Every condition holds with these. */
const settings = (url: string) => [
  "networks.ledger:testnet.enabled=false",
  "networks.ledger:pubnet.enabled=true",
  `networks.ledger:pubnet.rpc_urls=["${url}"]`,
  "networks.ledger:pubnet.channel_count=2",
  "networks.ledger:pubnet.fee_ceilings_calibrated=true",
  "networks.ledger:pubnet.fees={exact: {max_resource_fee_stroops: 200000}}",
  "networks.ledger:pubnet.upto_contract=CANALGV64JJOCXP6WJ6AGD3SJ6FPAFAAJX5T2SVLP4GQYDK7KIGCNKAF",
  `networks.ledger:pubnet.assets=[{contract: ${usdcContract}, symbol: USDC, decimals: 7}]`,
  "plugins=[x402-exact, catalog]",
  "server.port=0"
]
const secrets = {
  FACILITATOR_API_KEYS: `shop:${key}`,
  SPONSOR_SECRET: sponsor.secret(),
  DATABASE_URL: "postgres://here"
}

interface Departure {
  readonly set?: ReadonlyArray<string>
  readonly environment?: Record<string, string>
  readonly opensChannels?: boolean
}

/** Starts a facilitator for pubnet; it runs until the Scope closes. */
const start = Effect.fnUntraced(function* ({ environment, opensChannels = false, set = [] }: Departure) {
  const { url } = yield* Ledger
  const files = yield* FileSystem.FileSystem
  const stateFolder = yield* files.makeTempDirectoryScoped({ prefix: "tollkeeper-pubnet-" })
  const profile = yield* loadProfile("self-hosted", [...settings(url), ...set], { ...secrets, ...environment })
  const ready = yield* Deferred.make<{ readonly port: number; readonly services: Context.Context<never> }, unknown>()
  const running = yield* serve({
    profile,
    stateFolder,
    database: yield* Database,
    onReady: (address, services) => Effect.asVoid(Deferred.succeed(ready, { port: address!.port, services }))
  }).pipe(
    Effect.provideService(OpensChannels, opensChannels),
    Effect.provideService(References.MinimumLogLevel, "None"),
    Effect.tapCause((cause) => Deferred.failCause(ready, cause)),
    Effect.forkScoped
  )
  return { ...(yield* Deferred.await(ready)), stop: Fiber.interrupt(running) }
})

/** One database for the whole file: the channels that were opened are in it. */
class Database extends Context.Service<Database, Layer.Layer<DatabaseSource>>()("test/Database") {
  static readonly layer = Layer.effect(
    Database,
    Effect.gen(function* () {
      const source = yield* DatabaseSource
      const opened = yield* source.open
      return Layer.succeed(DatabaseSource, { open: Effect.succeed(opened) })
    })
  ).pipe(Layer.provide(sourceLayer(databaseKinds.at(-1)!)))
}

/** The message of a refused start. */
const refusalOf = (departure: Departure) =>
  Effect.gen(function* () {
    const exit = yield* Effect.exit(Effect.scoped(start(departure)))
    return Exit.isSuccess(exit) ? "it starts" : (sentenceOf(exit.cause) ?? "a defect")
  })

const without: ReadonlyArray<readonly [requirement: string, departure: Departure, sentence: RegExp]> = [
  ["S275", { set: ["networks.ledger:pubnet.development_auto_fund=true"] }, /development_auto_fund must be false/],
  ["S276", { set: ["networks.ledger:pubnet.fee_ceilings_calibrated=false"] }, /fee_ceilings_calibrated must be true/],
  ["S276", { set: ["networks.ledger:pubnet.fees={}"] }, /fees sets no ceilings/],
  [
    "S277",
    { environment: { FACILITATOR_API_KEYS: "" } },
    /no caller has a key; list at least one in FACILITATOR_API_KEYS/
  ],
  ["S278", { environment: { SPONSOR_SECRET: "SNOSEED" } }, /the sponsor's secret is not a secret seed/],
  ["S278", { environment: { SPONSOR_SECRET: "" } }, /the sponsor's secret seed is not set/],
  [
    "S278",
    {
      environment: { CHANNELS: "SNOSEED" },
      set: ["networks.ledger:pubnet.channel_secrets_env=CHANNELS"]
    },
    /channel secret 1 is not a secret seed/
  ],
  ["S279", { environment: { SPONSOR_SECRET: Keypair.random().secret() } }, /the sponsor G\w+ holds 0 stroops/],
  ["S279", { set: ["networks.ledger:pubnet.channel_count=3"] }, /1 of 3 channels hold less than channel_min_balance/],
  [
    "S280",
    { set: ["networks.ledger:pubnet.upto_contract=''"] },
    /upto_contract must name the upto settlement contract/
  ],
  ["S281", { set: ["catalog_security.require_https_origins=false"] }, /require_https_origins must be true/],
  ["S282", { set: ["catalog_security.allow_local_origins=true"] }, /allow_local_origins must be false/],
  ["S283", { set: ["discovery.include_unverified=true"] }, /include_unverified must be false/],
  ["S73", { set: ['networks.ledger:pubnet.rpc_urls=["http://127.0.0.1:9"]'] }, /RPC endpoint 1 is unreachable/],
  ["S274", { environment: { DATABASE_URL: "" } }, /set DATABASE_URL to a PostgreSQL server/]
]

layer(Layer.merge(Ledger.layer(passphrase), Layer.merge(Database.layer, NodeServices.layer)), {
  timeout: 240_000,
  excludeTestServices: true
})("pubnet", (it) => {
  it.effect("opens channels on pubnet only on request [S279]", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const { fund } = yield* Ledger
        yield* fund(sponsor.publicKey())
        expect(yield* refusalOf({})).toMatch(/2 of 2 channels hold less .* "tollkeeper channels open"/)
        const { services } = yield* start({ opensChannels: true })
        const pool = Context.getUnsafe(services, ChannelPool as never) as ChannelPool["Service"]
        while ((yield* pool.counts).ready < 2) yield* Effect.sleep("50 millis")
      })
    )
  )

  for (const [requirement, departure, sentence] of without) {
    it.effect(`is refused: ${sentence.source.slice(0, 60)} [S274, ${requirement}]`, () =>
      Effect.gen(function* () {
        const said = yield* refusalOf(departure)
        expect(said).toMatch(sentence)
        // Only its own sentence; a sponsor without funds has no channels either.
        expect(said).toMatch(/may not serve pubnet: \(1\) /)
        expect(said.includes("(2)")).toBe(sentence.source.includes("holds 0"))
      })
    )
  }

  it.effect("has a case above for each condition of the specification, which removes it alone [S275–S283]", () =>
    Effect.sync(() => {
      const conditions = Array.from({ length: 9 }, (_, index) => `S${275 + index}`)
      const cases = new Set(without.map(([requirement]) => requirement))
      expect(conditions.filter((one) => !cases.has(one))).toEqual([])
    })
  )

  it.effect("refuses pubnet with all missing conditions in one error [S274]", () =>
    Effect.gen(function* () {
      const said = yield* refusalOf({
        environment: { FACILITATOR_API_KEYS: "", SPONSOR_SECRET: "" },
        set: ["discovery.include_unverified=true", "networks.ledger:pubnet.fee_ceilings_calibrated=false"]
      })
      expect(said).toMatch(/\(1\) .*fee_ceilings_calibrated.*\(2\) .*FACILITATOR_API_KEYS.*include_unverified.*\(4\)/)
    })
  )

  it.effect("serves pubnet when every condition holds, and settles a payment [S8, S274]", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const { fund, url: ledger } = yield* Ledger
        const { port } = yield* start({})
        const url = `http://127.0.0.1:${port}`
        const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" }
        const [payer, seller] = [Keypair.random(), Keypair.random()]
        for (const account of [payer, seller]) yield* fund(account.publicKey(), { usdcUnits: 10_000_000n })
        const payment = yield* Effect.promise(() =>
          makePayment({
            payer,
            payTo: seller.publicKey(),
            amount: 10_000n,
            asset: usdcContract,
            network: "ledger:pubnet",
            networkPassphrase: passphrase,
            rpc: rpcCall(ledger)
          })
        )
        const post = (path: string) =>
          Effect.promise(() =>
            fetch(`${url}${path}`, { method: "POST", headers, body: JSON.stringify(payment.body) }).then((answer) =>
              answer.json()
            )
          )
        expect(yield* post("/verify")).toMatchObject({ isValid: true })
        expect(yield* post("/settle")).toMatchObject({ success: true, network: "ledger:pubnet" })
      })
    )
  )
})
