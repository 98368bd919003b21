// The official packages against this facilitator: an unpaid page, a paid one with its receipt, a transaction that is on
// the ledger, one request each to `/verify` and `/settle`, many concurrent buyers, and nothing for a replay or a
// changed payment. All money is counted on the ledger.
import assert from "node:assert/strict"
import { awaitTransaction } from "../../runtime/redteam/rpcCall.ts"
import { assertRefusedSettle, assertRefusedVerify, post } from "../../runtime/redteam/ask.ts"
import { installSet, type OfficialSet, type Purchase, type SetName, startSet } from "./officialSet.ts"
import { refusalCases } from "./refusalCases.ts"
import type { Part } from "./report.ts"
import type { World } from "./world.ts"

/** The price of every page of the seller, `"$0.001"` in atomic units of USDC. */
export const price = 10_000n

const network = "stellar:testnet"
const concurrentBuyers = 20

/** The reason in the last answer of a failed purchase. */
const reasonOf = ({ responses }: Purchase): string => {
  const { paymentRequired, paymentResponse } = responses.at(-1)!
  return JSON.stringify(paymentResponse ?? paymentRequired?.error ?? "no reason given").slice(0, 400)
}

const assertPaid = (purchase: Purchase): void => {
  assert.equal(purchase.error, undefined, `the official client failed: ${purchase.error}`)
  assert.deepEqual(
    purchase.responses.map(({ status }) => status),
    [402, 200],
    `statuses; ${reasonOf(purchase)}`
  )
  assert.equal(purchase.receipt?.success, true, JSON.stringify(purchase.receipt))
  assert.match(purchase.receipt.transaction, /^[0-9a-f]{64}$/)
  assert.equal(purchase.receipt.network, network)
}

const decodeHeader = (value: string | null): any =>
  value === null ? undefined : JSON.parse(Buffer.from(value, "base64").toString("utf8"))

export const officialCases = async (
  name: SetName,
  world: World,
  part: Part,
  say: (line: string) => void
): Promise<void> => {
  await installSet(name, say)
  const seller = await world.account(0)
  const payTo = seller.publicKey()
  const set = await startSet(name, world, payTo, network)
  try {
    await onePayment(set, world, part, payTo)
    await everyRoute(set, world, part, payTo)
    await manyBuyers(set, world, part, payTo)
    await replays(set, world, part, payTo)
    await identifiers(set, world, part, payTo)
    await identifierBuysNothing(set, world, part, "/plain")
    await identifierBuysOneCall(set, world, part, payTo)
    if (name === "c") await upfront(set, world, part, payTo)
    if (name === "c") await identifierBuysNothing(set, world, part, "/upfront")
    await refusalCases(part, world, payTo, price, async () => {
      const buyer = await world.account(1)
      const unpaid = await fetch(`${set.sellerUrl}/plain`)
      const paymentRequired = decodeHeader(unpaid.headers.get("payment-required"))
      const paymentPayload = await set.sign(paymentRequired, buyer.secret())
      return { x402Version: 2, paymentPayload, paymentRequirements: paymentPayload.accepted }
    })
  } finally {
    await set.stop()
  }
}

/** The flow that settles before the handler: no request to `/verify`, one to `/settle`, and a replay buys nothing. */
const upfront = async (set: OfficialSet, world: World, part: Part, payTo: string): Promise<void> => {
  const buyer = await world.account(1)
  const before = await world.balance(payTo)
  const [verifies, settles] = [set.tap.of("/verify").length, set.tap.of("/settle").length]
  let purchase: Purchase | undefined
  await part.check("the upfront flow is paid by /settle alone, before the handler", async () => {
    purchase = await set.buy({ path: "/upfront", secret: buyer.secret() })
    assertPaid(purchase)
    assert.equal(purchase.responses[0]!.paymentRequired.accepts[0].extra.paymentFlow, "upfront")
    assert.deepEqual(JSON.parse(purchase.body), { page: "upfront" })
    assert.equal(set.tap.of("/verify").length, verifies)
    assert.equal(set.tap.of("/settle").length - settles, 1)
    assert.equal((await world.balance(payTo)) - before, price)
  })
  await part.check("an upfront payment sent again buys nothing more", async () => {
    const signature = purchase!.responses.at(-1)!.paymentSignature!
    const again = await fetch(`${set.sellerUrl}/upfront`, { headers: { "payment-signature": signature } })
    assert.notEqual(again.status, 200, await again.text())
    assert.equal((await world.balance(payTo)) - before, price)
  })
}

/** A buyer that adds an identifier that the seller did not ask for to one payment, and sends it repeatedly. */
const identifierBuysNothing = async (set: OfficialSet, world: World, part: Part, path: string): Promise<void> => {
  await part.check(`${path}: one payment with the buyer's identifier buys one page`, async () => {
    const offered = await fetch(`${set.sellerUrl}${path}`)
    const required = offered.headers.get("payment-required")!
    const paymentRequired = JSON.parse(Buffer.from(required, "base64").toString("utf8"))
    const paymentPayload = await set.sign(paymentRequired, (await world.account(1)).secret())
    const identifier = { info: { required: false, id: `pay_${crypto.randomUUID().replaceAll("-", "")}` } }
    paymentPayload.extensions = { ...paymentPayload.extensions, "payment-identifier": identifier }
    const signature = Buffer.from(JSON.stringify(paymentPayload)).toString("base64")
    const ask = () => fetch(`${set.sellerUrl}${path}`, { headers: { "payment-signature": signature } })
    const concurrent = await Promise.all(Array.from({ length: 8 }, ask))
    const later = [await ask(), await ask(), await ask()]
    const served = [...concurrent, ...later].filter(({ status }) => status === 200)
    assert.equal(served.length, 1, [...concurrent, ...later].map(({ status }) => status).join())
  })
}

/** The same with a tool behind MCP whose calls take from nothing to two seconds, verified first and settled last. */
const identifierBuysOneCall = async (set: OfficialSet, world: World, part: Part, payTo: string): Promise<void> => {
  await part.check("a tool: one payment with the buyer's identifier buys one call", async () => {
    const call = async (milliseconds: number, payment?: unknown): Promise<any> => {
      const params = {
        name: "report",
        arguments: { milliseconds },
        ...(payment === undefined ? {} : { _meta: { "x402/payment": payment } })
      }
      const answer = await fetch(`${set.sellerUrl}/mcp`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params })
      })
      return ((await answer.json()) as any).result
    }
    const before = await world.balance(payTo)
    const paymentPayload = await set.sign((await call(0)).structuredContent, (await world.account(1)).secret())
    const identifier = { info: { required: false, id: `pay_${crypto.randomUUID().replaceAll("-", "")}` } }
    paymentPayload.extensions = { ...paymentPayload.extensions, "payment-identifier": identifier }
    const answers = await Promise.all([0, 1, 2, 3, 4, 5, 6, 7].map((at) => call(at * 280, paymentPayload)))
    answers.push(await call(0, paymentPayload))
    const served = answers.filter(({ isError }) => isError !== true)
    assert.equal(served.length, 1, JSON.stringify(answers.map((one) => one.structuredContent?.error)))
    assert.equal((await world.balance(payTo)) - before, price)
  })
}

const onePayment = async (set: OfficialSet, world: World, part: Part, payTo: string): Promise<void> => {
  const buyer = await world.account(1)
  const before = await world.balance(payTo)
  const [verifies, settles] = [set.tap.of("/verify").length, set.tap.of("/settle").length]
  let purchase: Purchase | undefined
  await part.check("402 with PAYMENT-REQUIRED, then 200 with PAYMENT-RESPONSE [S14][S15][S16]", async () => {
    purchase = await set.buy({ path: "/plain", secret: buyer.secret() })
    assertPaid(purchase)
    const { paymentRequired } = purchase.responses[0]!
    assert.equal(paymentRequired.x402Version, 2)
    assert.deepEqual(
      paymentRequired.accepts.map((option: any) => [option.network, option.amount, option.payTo]),
      [[network, String(price), payTo]]
    )
    assert.equal(paymentRequired.accepts[0].extra.areFeesSponsored, true)
    assert.deepEqual(JSON.parse(purchase.body), { page: "plain" })
    assert.equal(purchase.receipt.payer, buyer.publicKey())
  })
  await part.check("the seller asked /verify once and /settle once", () => {
    assert.equal(set.tap.of("/verify").length - verifies, 1)
    assert.equal(set.tap.of("/settle").length - settles, 1)
  })
  await part.check("the ledger knows the transaction of the receipt, as a success [S57]", async () => {
    const found = await awaitTransaction(world.rpc, purchase!.receipt.transaction)
    assert.equal(found.status, "SUCCESS")
  })
  await part.check("the price moved from buyer to seller without a fee [S10]", async () => {
    assert.equal(await world.balance(buyer.publicKey()), 10_000_000n - price)
    assert.equal((await world.balance(payTo)) - before, price)
  })
  part.figure("one payment ms", String(purchase?.milliseconds ?? "-"))
}

const everyRoute = async (set: OfficialSet, world: World, part: Part, payTo: string): Promise<void> => {
  const routes = [
    { path: "/weather?city=Riga", body: { city: "Riga", celsius: 17 } },
    { path: "/users/7", body: { id: "7" } },
    { path: "/report", method: "POST", json: { company: "Acme" }, body: { company: "Acme", pages: 3 } },
    { path: "/order", body: { page: "order" } }
  ]
  const buyer = await world.account(1)
  const before = await world.balance(payTo)
  for (const { body, ...route } of routes) {
    await part.check(`${route.method ?? "GET"} ${route.path} is paid and served`, async () => {
      const purchase = await set.buy({ ...route, secret: buyer.secret() })
      assertPaid(purchase)
      assert.deepEqual(JSON.parse(purchase.body), body)
    })
  }
  await part.check("a client that cannot learn the close interval is paid and served", async () => {
    assertPaid(await set.buy({ path: "/plain", secret: buyer.secret() }, "down"))
  })
  await part.check("each of them paid its price once", async () => {
    assert.equal((await world.balance(payTo)) - before, price * BigInt(routes.length + 1))
  })
}

const manyBuyers = async (set: OfficialSet, world: World, part: Part, payTo: string): Promise<void> => {
  const buyers = await Promise.all(Array.from({ length: concurrentBuyers }, () => world.account(1)))
  const before = await world.balance(payTo)
  let purchases: ReadonlyArray<Purchase> = []
  await part.check(`${concurrentBuyers} concurrent buyers are all paid and served`, async () => {
    purchases = await Promise.all(buyers.map((buyer) => set.buy({ path: "/plain", secret: buyer.secret() })))
    purchases.forEach(assertPaid)
    assert.equal(new Set(purchases.map(({ receipt }) => receipt.transaction)).size, concurrentBuyers)
  })
  await part.check(`the ledger knows all ${concurrentBuyers}, and each buyer paid once`, async () => {
    for (const { receipt } of purchases) {
      assert.equal((await awaitTransaction(world.rpc, receipt.transaction)).status, "SUCCESS")
    }
    for (const buyer of buyers) assert.equal(await world.balance(buyer.publicKey()), 10_000_000n - price)
    assert.equal((await world.balance(payTo)) - before, price * BigInt(concurrentBuyers))
  })
  const times = purchases.map(({ milliseconds }) => milliseconds).sort((a, b) => a - b)
  part.figure(`${concurrentBuyers} concurrent, median ms`, String(times[times.length >> 1] ?? "-"))
  part.figure("slowest ms", String(times.at(-1) ?? "-"))
}

const replays = async (set: OfficialSet, world: World, part: Part, payTo: string): Promise<void> => {
  const buyer = await world.account(1)
  const purchase = await set.buy({ path: "/plain", secret: buyer.secret() })
  const settle = set.tap.of("/settle").at(-1)!
  const paid = await world.balance(payTo)
  await part.check("a replayed settle is answered already settled, with the payment's hash", async () => {
    assertPaid(purchase)
    const answer = await post(`${world.facilitator}/settle`, settle.body)
    assertRefusedSettle(answer, ["settle_stellar_already_settled"])
    assert.equal(answer.status, 200)
    assert.equal(answer.json.transaction, purchase.receipt.transaction)
  })
  await part.check("ten replays side by side are refused alike", async () => {
    const answers = await Promise.all(
      Array.from({ length: 10 }, () => post(`${world.facilitator}/settle`, settle.body))
    )
    for (const answer of answers) assertRefusedSettle(answer, ["settle_stellar_already_settled"])
  })
  await part.check("a replayed verify is not valid any more", async () => {
    const answer = await post(`${world.facilitator}/verify`, settle.body)
    assertRefusedVerify(answer, ["invalid_stellar_enforcing_simulation_failed", "settle_stellar_already_settled"])
  })
  await part.check("a settled authorization at another resource is a conflict, 409, without payment", async () => {
    const body = JSON.parse(settle.body)
    body.paymentPayload.resource.url = `${set.sellerUrl}/weather`
    const answer = await post(`${world.facilitator}/settle`, body)
    assertRefusedSettle(answer, ["payment_identifier_conflict"])
    assert.equal(answer.status, 409)
  })
  await part.check("the seller gives nothing for a replayed PAYMENT-SIGNATURE", async () => {
    const header = purchase.responses[1]!.paymentSignature!
    const answer = await fetch(`${set.sellerUrl}/plain`, { headers: { "payment-signature": header } })
    assert.equal(answer.status, 402, await answer.text())
  })
  await part.check("no replay moved money", async () => {
    assert.equal(await world.balance(payTo), paid)
    assert.equal(await world.balance(buyer.publicKey()), 10_000_000n - price)
  })
}

const identifiers = async (set: OfficialSet, world: World, part: Part, payTo: string): Promise<void> => {
  const buyer = await world.account(1)
  const identifier = `pay_${crypto.randomUUID().replaceAll("-", "")}`
  const purchase = await set.buy({ path: "/order", secret: buyer.secret(), identifier })
  const settle = set.tap.of("/settle").at(-1)!
  const paid = await world.balance(payTo)
  await part.check("a payment may carry an identifier of the official extension", () => {
    assertPaid(purchase)
    assert.equal(JSON.parse(settle.body).paymentPayload.extensions["payment-identifier"].info.id, identifier)
  })
  await part.check("the same identifier and payment name the transaction, and repeat no success", async () => {
    const answer = await post(`${world.facilitator}/settle`, settle.body)
    assertRefusedSettle(answer, ["settle_stellar_already_settled"])
    assert.equal(answer.json.transaction, purchase.receipt.transaction)
  })
  await part.check("an identifier with another payment is a conflict, 409, on both routes [S268]", async () => {
    const second = await set.buy({ path: "/order", secret: buyer.secret(), identifier })
    assert.notEqual(second.status, 200, "the seller served a conflicting payment")
    const body = set.tap.of("/verify").at(-1)!.body
    assert.notEqual(
      JSON.parse(body).paymentPayload.payload.transaction,
      JSON.parse(settle.body).paymentPayload.payload.transaction
    )
    const [verify, settled] = await Promise.all([
      post(`${world.facilitator}/verify`, body),
      post(`${world.facilitator}/settle`, body)
    ])
    assertRefusedVerify(verify, ["payment_identifier_conflict"])
    assertRefusedSettle(settled, ["payment_identifier_conflict"])
    assert.deepEqual([verify.status, settled.status], [409, 409])
  })
  await part.check("identifiers moved no money twice", async () => {
    assert.equal(await world.balance(payTo), paid)
    assert.equal(await world.balance(buyer.publicKey()), 10_000_000n - price)
  })
}
