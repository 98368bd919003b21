// A watchtower on the embedded ledger: the seller and its facilitator are down for longer than the delay, the payer
// withdraws through another facilitator, and the seller loses nothing that it exported. Also files that are hostile or
// old, and two watchtowers.
import { assert, it } from "@effect/vitest"
import { Keypair } from "@stellar/stellar-sdk"
import { Effect } from "effect"
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { BatchClaims } from "../../examples/batch/BatchClaims.ts"
import { BatchStellarClient } from "../../examples/batch/BatchStellarClient.ts"
import { BatchStellarServer, keyAuthorizer } from "../../examples/batch/BatchStellarServer.ts"
import {
  delegateAuthorizer,
  exportForWatch,
  remoteAuthorizer,
  remoteChannels,
  signForWatch
} from "../../examples/batch/remoteChannels.ts"
import { startBatchSeller } from "../../examples/batch/startBatchSeller.ts"
import { claimOf, isProof, readWatchFile, type WatchProof } from "../../examples/batch/watchFile.ts"
import { Watchtower, type WatchtowerOptions } from "../../examples/watchtower.ts"
import { decode, encode } from "../../examples/client/keptPayments.mjs"
import { testnetUsdc } from "../../runtime/redteam/buyer.ts"
import { runCommand } from "../support/runCommand.ts"
import { startBatch } from "../plugins/x402-batch/world.ts"

const network = "ledger:testnet"
const price = 100n
const apiKey = "shop-secret-0123456789"
const environment = {
  FACILITATOR_API_KEYS: `shop:${apiKey}`,
  BATCH_AUTHORIZER_SECRET: "a secret for the authorizers of this test"
}

type Kind = "own" | "store" | "delegated"

/** A buyer makes three calls. The seller exports after the first and the third, then it stops. */
const sold = Effect.fnUntraced(function* (kind: Kind, first: Effect.Success<ReturnType<typeof startBatch>>) {
  const set = [
    "plugins=[x402-exact,x402-batch,batch-store]",
    `networks.ledger:testnet.batch_contract=${first.contract}`
  ]
  const own = yield* startBatch({ channels: 5, ledgerUrl: first.ledgerUrl, set, environment })
  const store = { facilitator: own.url, apiKey, network }
  const authorizer = yield* Effect.promise(async () => {
    if (kind === "own") return keyAuthorizer(Keypair.random().secret())
    return kind === "store" ? remoteAuthorizer(store) : delegateAuthorizer(store)
  })
  const server = new BatchStellarServer({
    ...{ receiver: (yield* first.account(0n)).publicKey(), authorizer, minDepositTimes: 1 },
    ...(kind === "store" ? { channels: remoteChannels(store) } : {})
  })
  const offered = { asset: testnetUsdc, price, maxTimeoutSeconds: 300 }
  const shop = yield* Effect.acquireRelease(
    Effect.promise(() => startBatchSeller({ server, ...store, ...offered })),
    (one) => Effect.promise(() => one.close())
  )
  const url = `${shop.url}/page`
  const buyer = yield* first.account(1_000n)
  const client = new BatchStellarClient({ secret: buyer.secret(), rpcUrl: first.ledgerUrl, depositTimes: 10 })
  const terms = decode((yield* Effect.promise(() => fetch(url))).headers.get("payment-required")).accepts[0]
  const buy = async (): Promise<void> => {
    const paymentPayload = { ...(await client.createPaymentPayload(2, terms)), accepted: terms }
    const response = await fetch(url, { headers: { "payment-signature": encode(paymentPayload) } })
    assert.strictEqual(response.status, 200, response.headers.get("payment-required") ?? "")
    const settleResponse = decode(response.headers.get("payment-response"))
    await client.schemeHooks.onPaymentResponse({ paymentPayload, requirements: terms, settleResponse })
  }
  const claims = new BatchClaims({ server, ...store, token: testnetUsdc })
  const exported = () => (kind === "store" ? exportForWatch(store) : claims.exportForWatch())
  return yield* Effect.promise(async () => {
    await buy()
    const older = await exported()
    for (let call = 0; call < 2; call++) await buy()
    // The facilitator signs by its caller's own keys only.
    const [claim] = (await server.channels.list()).map(claimOf)
    const channel = { ...claim!.voucher.channel, receiverAuthorizer: buyer.publicKey() }
    const foreign = { ...claim!, voucher: { ...claim!.voucher, channel } }
    assert.match(await signForWatch(store, [foreign]).then(() => "signed", String), /invalid_request claims/)
    return { buyer, client, terms, older, file: await exported() }
  })
})

const makeTower = Effect.fnUntraced(function* (
  first: Effect.Success<ReturnType<typeof startBatch>>,
  options: Partial<WatchtowerOptions> = {}
) {
  const [kept, lines] = [[] as Array<WatchProof>, [] as Array<string>]
  const secret = (yield* first.account(0n)).secret()
  const tower = new Watchtower({
    ...{ secret, rpcUrls: [first.ledgerUrl], keep: async (proof) => void kept.push(proof) },
    ...{ report: (line) => void lines.push(line), ...options }
  })
  return { tower, kept, lines }
})

const makeWorld = Effect.fnUntraced(function* (kind: Kind) {
  const first = yield* startBatch({ channels: 5, closeMillis: 500 })
  // The seller and its facilitator stop at the end of this scope.
  const { buyer, client, file, older, terms } = yield* Effect.scoped(sold(kind, first))
  const step = Effect.fnUntraced(function* (name: "start" | "end") {
    const body = yield* Effect.promise(() => client.withdrawal(name, terms))
    const { json, text } = yield* first.settled(body)
    assert.strictEqual(json.success, true, text)
  })
  const channelId = client.channelIdOf(terms)
  /** The delay ends, the payer takes the rest, and the receiver is paid the claimed amount. */
  const end = Effect.gen(function* () {
    yield* Effect.promise(() => fetch(`${first.ledgerUrl}/advance?seconds=901`, { method: "POST" }))
    yield* step("end")
    const payload = { type: "settle", receiver: terms.payTo, token: testnetUsdc }
    const accepted = { ...terms, amount: "0" }
    const paymentPayload = { x402Version: 2, accepted, payload }
    yield* first.settled({ x402Version: 2, paymentPayload, paymentRequirements: accepted })
    return [yield* first.balance(terms.payTo), yield* first.balance(buyer.publicKey())]
  })
  return { channelId, end, file, first, older, start: step("start") }
})

for (const kind of ["own", "store", "delegated"] as const)
  it.live(`answers a withdrawal while a seller with ${kind} records and its facilitator are down`, () =>
    Effect.gen(function* () {
      const { channelId, end, file, first, start } = yield* makeWorld(kind)
      const { kept, tower } = yield* makeTower(first)
      const second = yield* makeTower(first)
      tower.load(file)
      second.tower.load(file)
      assert.deepStrictEqual(yield* Effect.promise(() => tower.turn()), [])
      yield* start
      // Two watchtowers concurrently: one claims, the other changes nothing.
      const proofs = yield* Effect.promise(() => Promise.all([tower.turn(), second.tower.turn()]))
      const [proof, ...others] = proofs.flat()
      assert.strictEqual(others.length, 0)
      assert.deepStrictEqual([...kept, ...second.kept], [proof])
      assert.deepInclude(proof, { channelId, claimedBefore: "0", claimedAfter: "300" })
      assert.isTrue(isProof(proof!))
      assert.isFalse(isProof({ ...proof!, claimedAfter: "301" }))
      assert.deepStrictEqual(yield* Effect.promise(() => tower.turn()), [])
      assert.deepStrictEqual(yield* end, [300n, 700n])
    }).pipe(Effect.scoped)
  )

it.live("runs as a command, which appends proofs and checks them", () =>
  Effect.gen(function* () {
    const { end, file, first, start } = yield* makeWorld("own")
    const folder = mkdtempSync(join(tmpdir(), "tollkeeper-watch-"))
    const [channels, proofs] = [join(folder, "channels.json"), join(folder, "proofs.jsonl")]
    writeFileSync(channels, file)
    const env = { WATCH_SECRET: (yield* first.account(0n)).secret() }
    const run = (...args: ReadonlyArray<string>) => runCommand(["watch", ...args], env)
    yield* start
    const once = yield* run("--channels", channels, "--rpc", first.ledgerUrl, "--proofs", proofs, "--once")
    assert.strictEqual(once.status, 0, once.stderr)
    const verified = yield* run("--verify", proofs)
    assert.deepStrictEqual([verified.status, verified.sentence], [0, undefined])
    assert.match(verified.stdout, /^signed .* 0 to 300 /)
    writeFileSync(proofs, readFileSync(proofs, "utf8").replace('"300"', '"301"'))
    assert.strictEqual((yield* run("--verify", proofs)).status, 1)
    assert.deepStrictEqual(yield* end, [300n, 700n])
    rmSync(folder, { recursive: true })
  }).pipe(Effect.scoped)
)

it.live("claims by an older file only its total, and keeps its account from hostile files", () =>
  Effect.gen(function* () {
    const { end, file, first, older, start } = yield* makeWorld("own")
    yield* start
    const read = JSON.parse(file)
    const changed = (change: (claim: any) => object) =>
      JSON.stringify({ ...read, claims: read.claims.map((one: any) => ({ ...one, ...change(one) })) })
    for (const hostile of [
      changed(() => ({ totalClaimed: "999" })),
      changed(({ expiresAt }) => ({ expiresAt: expiresAt + 1 })),
      changed(({ voucher }) => ({ voucher: { ...voucher, maxClaimableAmount: "1000" } })),
      changed(() => ({ signature: `01${"00".repeat(63)}` })),
      changed(() => ({ voucher: null })),
      JSON.stringify({ ...read, contract: testnetUsdc }),
      JSON.stringify({ ...read, network: "ledger:pubnet" })
    ])
      assert.strictEqual(readWatchFile(hostile).claims.size, 0)
    const refusing: ReadonlyArray<readonly [Partial<WatchtowerOptions>, RegExp]> = [
      [{ feeMax: 1_000n }, /above the bound/],
      [{ spendMax: 1_000n }, /fees of a day/],
      [{ gainMin: 301n }, /gain is only 300/],
      [{ wasmHash: "00".repeat(32) }, /other code/],
      [{ rpcUrls: ["http://127.0.0.1:1", first.ledgerUrl], gainMin: 301n }, /does not answer/]
    ]
    for (const [options, reason] of refusing) {
      const { lines, tower } = yield* makeTower(first, options)
      tower.load(file)
      assert.deepStrictEqual(yield* Effect.promise(() => tower.turn()), [])
      assert.match(lines.join("\n"), reason)
    }
    const { lines, tower } = yield* makeTower(first)
    tower.load(older)
    // A broken newer file leaves the earlier one.
    tower.load("{")
    assert.match(lines.join("\n"), /the earlier one stays/)
    assert.deepStrictEqual(yield* Effect.promise(async () => (await tower.turn()).length), 1)
    tower.load(file)
    assert.deepStrictEqual(yield* Effect.promise(async () => (await tower.turn()).length), 1)
    tower.load(older)
    assert.deepStrictEqual(yield* Effect.promise(() => tower.turn()), [])
    assert.deepStrictEqual(yield* end, [300n, 700n])
  }).pipe(Effect.scoped)
)
