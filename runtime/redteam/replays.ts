// Replays of one authorization in every variant, against any facilitator on a ledger with a friendbot: concurrently,
// later, with other terms, in another envelope, in the network's other spelling, for another page, with another
// identifier, together with a second authorization with its nonce, and beside the buyer's own submission. Every variant
// is the same payment: one answer of success without an identifier, one movement of the asset.
import assert from "node:assert/strict"
import { Account, Keypair, Networks, TransactionBuilder, xdr } from "@stellar/stellar-sdk"
import type { Answer } from "./ask.ts"
import { usdcBalance } from "./balances.ts"
import { makePayment, type PaymentOptions } from "./buyer.ts"
import { type Case, Skipped } from "./cases.ts"
import { price } from "./crafted.ts"
import { awaitTransaction } from "./rpcCall.ts"
import type { World } from "./target.ts"

type Body = Record<string, any>

/** Variants of the same payment, as a thief, a second seller or a careless client makes them. */
const dresses = (stranger: string): ReadonlyArray<readonly [name: string, dress: (body: Body) => void]> => {
  const terms = (change: (terms: Body) => void) => (body: Body) => {
    change(body["paymentRequirements"])
    change(body["paymentPayload"].accepted)
  }
  return [
    ["as it was", () => {}],
    ["for another page", (body) => (body["paymentPayload"].resource = { url: "https://other.example/page" })],
    ["for a stranger as recipient", terms((one) => (one["payTo"] = stranger))],
    ["for one unit", terms((one) => (one["amount"] = "1"))],
    ["for a longer time", terms((one) => (one["maxTimeoutSeconds"] = 299))],
    ["with words of its own in extra", terms((one) => (one["extra"] = { ...one["extra"], payTo: stranger }))],
    [
      "in the network's other spelling",
      terms((one) => {
        const [name, id] = String(one["network"]).split(":")
        one["network"] = `${name === "ledger" ? "stellar" : "ledger"}:${id}`
      })
    ],
    [
      "under an identifier that is new",
      (body) => {
        const id = `redteam-${Keypair.random().publicKey()}`
        body["paymentPayload"].extensions = { "payment-identifier": { info: { id } } }
      }
    ]
  ]
}

const pay = (world: World, more: Partial<PaymentOptions> = {}) =>
  makePayment({
    rpc: world.money!.rpc,
    payer: world.money!.buyer,
    payTo: world.money!.seller.publicKey(),
    amount: price,
    network: world.networks[0]!,
    ...more
  })

const wasPaid = ({ json, status, text }: Answer): boolean => {
  assert.ok(status < 500 || status === 503, `status ${status}: ${text.slice(0, 300)}`)
  return json?.success === true
}

/** Sends, and checks the number of successful answers and of movements. */
const moves = async (world: World, payments: 0 | 1, ask: () => Promise<ReadonlyArray<Answer>>): Promise<void> => {
  const { held } = world.money!
  const [buyer, thief, seller] = await held()
  const answers = await ask()
  const paid = answers.filter(wasPaid).length
  const due = price * BigInt(payments)
  assert.deepEqual(await held(), [buyer! - due, thief, seller! + due], `${paid} answers of success`)
  assert.equal(paid, payments, `${paid} answers of success, ${answers[0]?.text.slice(0, 200)}`)
}

const settled = async (world: World): Promise<Body> => {
  const { body } = await pay(world)
  await moves(world, 1, async () => [await world.ask("/settle", body)])
  return structuredClone(body)
}

const sequenceOf = async (world: World, address: string): Promise<string> => {
  const accountId = Keypair.fromPublicKey(address).xdrAccountId()
  const key = xdr.LedgerKey.account(new xdr.LedgerKeyAccount({ accountId })).toXdr("base64")
  const { entries } = await world.money!.rpc("getLedgerEntries", { keys: [key] })
  const data = xdr.LedgerEntryData.fromXdr(entries[0].xdr, "base64")
  if (data.type !== "account") throw new Error(`the ledger answered a ${data.type} for an account`)
  return String(data.account.seqNum)
}

/** Submits an operation with `source` as its payer of fees; resolves with the transaction's status. */
const submit = async (world: World, source: Keypair, operation: xdr.Operation): Promise<string> => {
  const { rpc } = world.money!
  const account = () => sequenceOf(world, source.publicKey()).then((number) => new Account(source.publicKey(), number))
  const build = async (fee: string, data?: xdr.SorobanTransactionData) => {
    const builder = new TransactionBuilder(await account(), { fee, networkPassphrase: Networks.TESTNET })
    builder.addOperation(operation).setTimeout(60)
    return (data === undefined ? builder : builder.setSorobanData(data)).build()
  }
  const simulated = await rpc("simulateTransaction", { transaction: (await build("100")).toEnvelope().toXdr("base64") })
  if (simulated.error !== undefined)
    throw new Error(`the ledger refuses the buyer's own transaction: ${simulated.error}`)
  const data = xdr.SorobanTransactionData.fromXdr(simulated.transactionData, "base64")
  const transaction = await build(String(100_000 + Number(simulated.minResourceFee)), data)
  transaction.sign(source)
  const { hash } = await rpc("sendTransaction", { transaction: transaction.toEnvelope().toXdr("base64") })
  return (await awaitTransaction(rpc, hash)).status
}

/** The one call of a payment, with its authorization. */
const operationOf = (transaction: string): xdr.Operation => {
  const envelope = xdr.TransactionEnvelope.fromXdr(transaction, "base64")
  if (envelope.type !== "envelopeTypeTx") throw new Error("the payment is no plain transaction")
  return envelope.v1.tx.operations[0]!
}

/** The buyer's own transfer of all it has. */
const emptying = async (world: World): Promise<xdr.Operation> => {
  const { buyer, rpc, thief } = world.money!
  const amount = await usdcBalance(rpc, buyer.publicKey())
  const { transaction } = await pay(world, { payTo: thief.publicKey(), amount })
  return operationOf(transaction)
}

const still = "USDC of buyer, stranger and seller, beyond one payment"
const once = (attack: number, name: string, play: Case["play"]): Case => ({
  attack,
  on: "facilitator",
  name,
  accepts: "one answer of success for one movement; otherwise a refusal",
  still,
  pays: true,
  play
})

const sameNonce = async (world: World, nonce: bigint, isConcurrent: boolean): Promise<void> => {
  const [one, other] = [
    await pay(world, { tamper: { nonce } }),
    await pay(world, { tamper: { nonce, expiryOffset: -2 } })
  ]
  await moves(world, 1, async () =>
    isConcurrent
      ? Promise.all([world.ask("/settle", one.body), world.ask("/settle", other.body)])
      : [await world.ask("/settle", one.body), await world.ask("/settle", other.body)]
  )
}

const repeats: ReadonlyArray<Case> = [
  once(22, "twelve concurrent requests of one payment", async (world) => {
    const { body } = await pay(world)
    await moves(world, 1, () => Promise.all(Array.from({ length: 12 }, () => world.ask("/settle", body))))
  }),
  ...dresses("").map(([name], index) =>
    once(index === 7 ? 101 : index === 0 ? 22 : 23, `a settled payment again, ${name}`, async (world) => {
      const body = await settled(world)
      dresses(world.money!.thief.publicKey())[index]![1](body)
      await moves(world, 0, async () => [await world.ask("/settle", body)])
    })
  ),
  once(87, "verify of a settled payment", async (world) => {
    const answer = await world.ask("/verify", await settled(world))
    assert.notEqual(answer.json?.isValid, true, answer.text.slice(0, 300))
  }),
  once(22, "all its variants concurrently", async (world) => {
    const { body } = await pay(world)
    const all = dresses(world.money!.thief.publicKey()).map(([, dress]) => {
      const dressed = structuredClone(body) as Body
      dress(dressed)
      return dressed
    })
    await moves(world, 1, () => Promise.all(all.map((one) => world.ask("/settle", one))))
  }),
  once(22, "one authorization in two envelopes", async (world) => {
    const nonce = 4_021n
    const expirationLedger = ((await world.money!.rpc("getLatestLedger")).sequence as number) + 10
    const source = world.money!.thief.publicKey()
    const one = await pay(world, { tamper: { nonce, expirationLedger } })
    const other = await pay(world, { tamper: { nonce, expirationLedger, source } })
    assert.notEqual(one.transaction, other.transaction)
    await moves(world, 1, async () => [await world.ask("/settle", one.body), await world.ask("/settle", other.body)])
  }),
  once(67, "two authorizations with one nonce, sequentially", (world) => sameNonce(world, 7_001n, false)),
  once(67, "two authorizations with one nonce, concurrently", (world) => sameNonce(world, 7_002n, true)),
  once(24, "one identifier for two payments", async (world) => {
    const id = `redteam-${Keypair.random().publicKey()}`
    const extensions = { "payment-identifier": { info: { id } } }
    const [one, other] = [await pay(world, { extensions }), await pay(world, { extensions })]
    await moves(world, 1, async () => [await world.ask("/settle", one.body)])
    await moves(world, 0, async () => {
      const answer = await world.ask("/settle", other.body)
      assert.equal(answer.status, 409, answer.text.slice(0, 300))
      return [answer]
    })
  })
]

const odd = JSON.parse(
  '{"constructor":{"prototype":{"isValid":false}},"__proto__":{"success":false},"toString":1,"a\\u0000b":"\\ud800"}'
) as object

const races: ReadonlyArray<Case> = [
  once(69, "the buyer's own submission between verify and settle", async (world) => {
    const { body, transaction } = await pay(world)
    const { held, thief } = world.money!
    const [buyer, , seller] = await held()
    await world.ask("/verify", body)
    assert.equal(await submit(world, thief, operationOf(transaction)), "SUCCESS")
    const answers = [await world.ask("/settle", body), await world.ask("/settle", body)]
    const paid = answers.filter(wasPaid).length
    assert.ok(paid <= 1, `${paid} answers of success`)
    const [after, , received] = await held()
    assert.deepEqual([after, received], [buyer! - price, seller! + price])
  }),
  once(77, "extensions with keys named constructor and __proto__", async (world) => {
    const { body } = await pay(world, { extensions: { bazaar: { info: odd, schema: odd } } })
    await moves(world, 1, async () => [await world.ask("/settle", body)])
  }),
  once(78, "an honest payment from a foreign page in a browser", async (world) => {
    if (!/^(127\.|localhost$|\[::1\]$)/.test(new URL(world.target.url).hostname))
      throw new Skipped("the target does not listen on this machine only")
    const { body } = await pay(world)
    const foreign = { "content-type": "text/plain", origin: "https://page.example", "sec-fetch-site": "cross-site" }
    await moves(world, 0, async () => [await world.ask("/settle", body, foreign)])
  }),
  // Last: the buyer has nothing afterwards.
  once(28, "the buyer's balance leaves between verify and settle", async (world) => {
    const { body } = await pay(world)
    const { held, thief } = world.money!
    const verify = await world.ask("/verify", body)
    assert.equal(verify.json?.isValid, true, verify.text.slice(0, 300))
    assert.equal(await submit(world, thief, await emptying(world)), "SUCCESS")
    const before = await held()
    const settle = await world.ask("/settle", body)
    assert.equal(settle.json?.success, false, settle.text.slice(0, 300))
    assert.deepEqual(await held(), before)
  })
]

export const replayCases: ReadonlyArray<Case> = [...repeats, ...races]
