// Replays of one authorization in every variant, against any facilitator on a ledger with a friendbot: concurrently,
// later, with other terms, in another envelope, in the network's other spelling, for another page, with another
// identifier, together with a second authorization with its nonce (attacks 22–24 and 67 of the red team's list). Every
// variant is the same payment: one answer of success without an identifier, one movement of the asset.
import assert from "node:assert/strict"
import { Keypair } from "@stellar/stellar-sdk"
import { type Answer, post } from "../conformance/ask.ts"
import type { Part } from "../conformance/report.ts"
import { usdcBalance } from "../support/balances.ts"
import { makePayment, type PaymentOptions } from "../support/buyer.ts"
import { askFriendbot, rpcCall } from "../support/rpcCall.ts"
import { bearerOf, networksOf, type Target } from "./target.ts"

const price = 10_000n

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

/** Runs every replay against `target`, with accounts from the friendbot of `ledger`. */
export const replayCases = async (target: Target, ledger: string, part: Part): Promise<void> => {
  const rpc = rpcCall(ledger)
  const [network] = await networksOf(target)
  const [buyer, seller, stranger] = [Keypair.random(), Keypair.random(), Keypair.random()]
  for (const account of [buyer, seller, stranger]) await askFriendbot(ledger, account.publicKey(), 1)
  const held = () => Promise.all([buyer, seller, stranger].map((account) => usdcBalance(rpc, account.publicKey())))
  const pay = (more: Partial<PaymentOptions> = {}) =>
    makePayment({ rpc, payer: buyer, payTo: seller.publicKey(), amount: price, network: network!, ...more })
  const settle = (body: unknown) => post(`${target.url}/settle`, body, 30_000, bearerOf(target))
  const wasPaid = ({ json, status, text }: Answer): boolean => {
    assert.ok(status < 500 || status === 503, `status ${status}: ${text.slice(0, 300)}`)
    return json?.success === true
  }
  /** Sends, and checks the number of successful answers and of movements. */
  const moves = async (payments: 0 | 1, ask: () => Promise<ReadonlyArray<Answer>>) => {
    const [ours, theirs, others] = await held()
    const paid = (await ask()).filter(wasPaid).length
    assert.equal(paid, payments, `${paid} answers of success`)
    const due = price * BigInt(payments)
    assert.deepEqual(await held(), [ours! - due, theirs! + due, others])
  }

  await part.check("twelve concurrent requests are one payment and one success", async () => {
    const { body } = await pay()
    await moves(1, () => Promise.all(Array.from({ length: 12 }, () => settle(body))))
  })
  const { body } = await pay()
  await part.check("the payment that is sent again below settles", () => moves(1, async () => [await settle(body)]))
  for (const [name, dress] of dresses(stranger.publicKey())) {
    await part.check(`once settled, it pays nothing ${name}`, async () => {
      const dressed = structuredClone(body) as Body
      dress(dressed)
      const verify = await post(`${target.url}/verify`, dressed, 30_000, bearerOf(target))
      assert.notEqual(verify.json?.isValid, true, verify.text)
      await moves(0, async () => [await settle(dressed)])
    })
  }
  await part.check("all its variants concurrently are one payment and one success", async () => {
    const fresh = (await pay()).body
    const all = dresses(stranger.publicKey()).map(([, dress]) => {
      const dressed = structuredClone(fresh) as Body
      dress(dressed)
      return dressed
    })
    await moves(1, () => Promise.all(all.map(settle)))
  })
  await part.check("in another envelope it is the same payment", async () => {
    const nonce = 4_021n
    const expirationLedger = ((await rpc("getLatestLedger")).sequence as number) + 10
    const [one, other] = await Promise.all([
      pay({ tamper: { nonce, expirationLedger } }),
      pay({ tamper: { nonce, expirationLedger, source: stranger.publicKey() } })
    ])
    assert.notEqual(one.transaction, other.transaction)
    await moves(1, async () => [await settle(one.body), await settle(other.body)])
  })
  await part.check("two authorizations with one nonce are one payment, sequentially and concurrently", async () => {
    for (const [nonce, isConcurrent] of [
      [7_001n, false],
      [7_002n, true]
    ] as const) {
      const [one, other] = [await pay({ tamper: { nonce } }), await pay({ tamper: { nonce, expiryOffset: -2 } })]
      await moves(1, async () =>
        isConcurrent
          ? Promise.all([settle(one.body), settle(other.body)])
          : [await settle(one.body), await settle(other.body)]
      )
    }
  })
  await part.check("an identifier belongs to one payment, whichever caller reuses it", async () => {
    const id = `redteam-${Keypair.random().publicKey()}`
    const extensions = { "payment-identifier": { info: { id } } }
    const [one, other] = [await pay({ extensions }), await pay({ extensions })]
    await moves(1, async () => [await settle(one.body)])
    await moves(0, async () => {
      const answer = await settle(other.body)
      assert.equal(answer.status, 409, answer.text)
      return [answer]
    })
  })
}
