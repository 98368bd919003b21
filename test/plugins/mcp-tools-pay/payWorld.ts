// A test world for payments: a facilitator with its ledger, an agent's account, a cataloged seller, and tool servers
// that pay from it.
import { Client } from "@modelcontextprotocol/sdk/client/index.js"
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js"
import type { Keypair } from "@stellar/stellar-sdk"
import { Context, Effect, Layer, type Scope } from "effect"
import { createCipheriv, randomBytes } from "node:crypto"
import { mkdtempSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import process from "node:process"
import { root } from "../../../runtime/bootstrap.mjs"
import { testnetUsdc } from "../../../runtime/redteam/buyer.ts"
import { type Facilitator, type FacilitatorOptions, startFacilitator } from "../../support/facilitator.ts"
import { declaring, mcpDeclaration, verified } from "../catalog/support.ts"
import { amount, inputSchema, type Seller, startSeller } from "./seller.ts"
import { call, type Called, connectHttp, type Json, startTools } from "../mcp-tools/support.ts"

export const agentKey = "agent:0123456789abcdef"
export const otherKey = "other:fedcba9876543210"

/** A keystore of the given seed, and the key that opens it. */
export const sealed = (seed: string): { readonly file: string; readonly key: string } => {
  const [key, nonce] = [randomBytes(32), randomBytes(12)]
  const cipher = createCipheriv("aes-256-gcm", key, nonce)
  const bytes = Buffer.concat([cipher.update(seed, "utf8"), cipher.final()])
  const file = join(mkdtempSync(join(tmpdir(), "tollkeeper-keystore-")), "keystore.json")
  writeFileSync(
    file,
    JSON.stringify({
      version: 1,
      cipher: "aes-256-gcm",
      nonce: nonce.toString("base64"),
      sealed: bytes.toString("base64"),
      tag: cipher.getAuthTag().toString("base64")
    })
  )
  return { file, key: key.toString("hex") }
}

/** Settings of a tool server that may pay on this facilitator's ledger. */
export const payingSet = (facilitator: Pick<Facilitator, "ledgerUrl">): ReadonlyArray<string> => [
  "plugins=[mcp-tools, mcp-tools-pay]",
  "allow_insecure_local=true",
  `networks.ledger:testnet.rpc_urls=["${facilitator.ledgerUrl}"]`,
  `networks.ledger:testnet.assets=[{contract: ${testnetUsdc}, symbol: USDC, decimals: 7}]`
]

const makeWorld = (options: FacilitatorOptions) =>
  Effect.gen(function* () {
    const facilitator = yield* startFacilitator(options)
    const agent = yield* facilitator.account()
    const payTo = (yield* facilitator.account()).publicKey()
    const seller = yield* startSeller(facilitator, payTo)
    const lister = yield* facilitator.account()
    const body = yield* declaring(facilitator, {
      payer: lister,
      payTo,
      url: seller.url,
      extension: mcpDeclaration("add", { inputSchema }),
      amount
    })
    yield* verified(facilitator, body)
    const { file, key } = sealed(agent.secret())
    const toolsUrl = (
      set: ReadonlyArray<string> = [],
      stateFolder?: string,
      environment: Readonly<Record<string, string>> = {}
    ) =>
      startTools({
        facilitatorUrl: facilitator.url,
        stateFolder,
        set: [
          ...payingSet(facilitator),
          "signer.mode=encrypted-key",
          `signer.keystore_file=${file}`,
          "budget.store=memory",
          ...set
        ],
        environment: { TOOLS_KEYSTORE_KEY: key, TOOLS_API_KEYS: `${agentKey},${otherKey}`, ...environment }
      })
    const paying = (set: ReadonlyArray<string> = [], as = agentKey, stateFolder?: string) =>
      Effect.flatMap(toolsUrl(set, stateFolder), (url) => connectHttp(url, as.split(":")[1]))
    const reader = yield* paying()
    const { wrapper } = (yield* call(reader, "x402_search_resources", { type: "mcp" })).body["resources"][0]
    return { facilitator, agent, seller, ref: wrapper.ref, versionHash: wrapper.versionHash, paying, toolsUrl }
  })

export class PayWorld extends Context.Service<
  PayWorld,
  {
    readonly facilitator: Facilitator
    readonly agent: Keypair
    readonly seller: Seller
    /** The seller's tool, as search returns it. */
    readonly ref: string
    readonly versionHash: string
    /** A separate tool server, and a client of it. */
    readonly paying: (
      set?: ReadonlyArray<string>,
      key?: string,
      stateFolder?: string
    ) => Effect.Effect<Client, unknown, Scope.Scope>
    readonly toolsUrl: (
      set?: ReadonlyArray<string>,
      stateFolder?: string,
      environment?: Readonly<Record<string, string>>
    ) => Effect.Effect<string, unknown, Scope.Scope>
  }
>()("test/PayWorld") {
  static readonly layer = Layer.effect(PayWorld, makeWorld({}))
  /**
   * With a ledger that closes when a transaction waits: a tool server in another process may need longer for a
   * payment than a fast ledger leaves it.
   */
  static readonly layerPatient = Layer.effect(PayWorld, makeWorld({ closeMillis: 2_000, closesOnSubmit: true }))
}

/** Calls the seller's tool. */
export const pay = (client: Client, ref: string, args: Json = { a: 1, b: 2 }, more: Json = {}): Effect.Effect<Called> =>
  call(client, "x402_call_resource", { ref, arguments: args, ...more })

/** How a host starts the tool server of its window. */
export const stdioCommand = Effect.fnUntraced(function* (state: string, set: ReadonlyArray<string> = []) {
  const { agent, facilitator } = yield* PayWorld
  const all = ["signer.mode=env-secret", `facilitator.base_url=${facilitator.url}`, ...payingSet(facilitator), ...set]
  return {
    command: process.execPath,
    args: [
      "--disable-warning=ExperimentalWarning",
      join(root, "runtime/cli.ts"),
      "tools",
      "--state",
      state,
      ...all.flatMap((one) => ["--set", one])
    ],
    env: { TOOLS_PAYER_SECRET: agent.secret() }
  }
})

export const connectStdio = (options: { command: string; args: Array<string>; env: Record<string, string> }) =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const client = new Client({ name: "host", version: "1.0.0" })
      await client.connect(new StdioClientTransport({ ...options, stderr: "ignore" }))
      return client
    }),
    (client) => Effect.promise(() => client.close())
  )
