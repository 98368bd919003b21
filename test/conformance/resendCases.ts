// A buyer that sends the same payment again to a seller of official packages, in the two cases of the seller's guide.
// First, the seller received pending and the payment settled afterwards, with and without a record of the sale. Second,
// the answer of `/settle` was lost in transit; then only a record (`soldOnce.mjs`) releases the sold content.
// The first case has its own facilitator, which answers pending before its ledger closes.
import assert from "node:assert/strict"
import { installSet, type OfficialSet, type SetName, startSet } from "./officialSet.ts"
import type { Part } from "./report.ts"
import { startWorld, type World } from "./world.ts"

const network = "stellar:testnet"

/** Pending comes before the next ledger, twice: newer clients repeat the settle once on their own. */
const slowLedger = ["local_ledger.close_interval_ms=5000", "limits.settle_timeout_ms=1000"]

const resend = (set: OfficialSet, path: string, header: string) =>
  fetch(`${set.sellerUrl}${path}`, { headers: { "payment-signature": header } })

const settled = async (world: World, transaction: string): Promise<void> => {
  for (let asked = 0; asked < 200; asked++) {
    const answer = await fetch(`${world.facilitator}/settlements?hash=${transaction}`)
    if (((await answer.json()) as any).items?.[0]?.status === "success") return
    await new Promise((resolve) => setTimeout(resolve, 200))
  }
  throw new Error(`${transaction} did not settle`)
}

/** Buys, and returns the payment that the official client sent. */
const send = async (set: OfficialSet, world: World, path: string) => {
  const purchase = await set.buy({ path, secret: (await world.account(1)).secret() })
  return { purchase, header: purchase.responses[1]!.paymentSignature! }
}

const decode = (response: Response): any =>
  JSON.parse(Buffer.from(response.headers.get("payment-response")!, "base64").toString("utf8"))

const pendingCases = async (set: OfficialSet, world: World, part: Part): Promise<void> => {
  for (const path of ["/plain", "/kept"]) {
    await part.check(
      `${path}: the seller receives pending; the same payment sent again later is served, once`,
      async () => {
        let sent = await send(set, world, path)
        // A payment just before a close is paid in time; the first verify of a process may exceed the timeout of 1 s.
        const isPending = () => sent.purchase.status !== 200 && set.tap.of("/settle").length > 0
        // With a record the seller itself settles again, until the ledger has closed.
        for (let times = 1; path === "/plain" && !isPending() && times < 8; times++) sent = await send(set, world, path)
        const { header, purchase } = sent
        assert.equal(purchase.status, path === "/kept" ? 200 : 402, purchase.body)
        const { transaction } = JSON.parse(set.tap.of("/settle").at(-1)!.answer)
        await settled(world, transaction)
        const again = await resend(set, path, header)
        assert.equal(again.status, 200, await again.clone().text())
        assert.equal(decode(again).transaction, transaction)
        const third = await resend(set, path, header)
        assert.equal(third.status, path === "/kept" ? 200 : 402, await third.clone().text())
        if (path === "/kept") assert.deepEqual(await third.json(), await again.json())
      }
    )
  }
}

const lostCases = async (set: OfficialSet, world: World, part: Part, payTo: string): Promise<void> => {
  await part.check("after a lost settle answer, nothing is served without a record", async () => {
    const { header, purchase } = await set.tap.loseWhile("/settle", () => send(set, world, "/plain"))
    assert.notEqual(purchase.status, 200)
    assert.equal((await resend(set, "/plain", header)).status, 402)
  })
  await part.check("with a record the same payment is served again each time", async () => {
    const before = await world.balance(payTo)
    const { header, purchase } = await set.tap.loseWhile("/settle", () => send(set, world, "/kept"))
    // Its outcome is unknown: never a new 402.
    assert.equal(purchase.status, 503, purchase.body)
    const served = await Promise.all([1, 2, 3].map(() => resend(set, "/kept", header)))
    const bodies = await Promise.all(served.map((one) => one.json()))
    assert.deepEqual(
      served.map(({ status }) => status),
      [200, 200, 200],
      JSON.stringify(bodies)
    )
    assert.deepEqual(bodies, [bodies[0], bodies[0], bodies[0]])
    for (const one of served) assert.deepEqual(decode(one), decode(served[0]!))
    assert.equal((await world.balance(payTo)) - before, 10_000n)
    const asked = set.tap.exchanges.length
    assert.deepEqual(await (await resend(set, "/kept", header)).json(), bodies[0])
    assert.equal(set.tap.exchanges.length, asked, "what is stored is released without a question")
    assert.equal((await resend(set, "/other", header)).status, 409)
    const changed = JSON.parse(Buffer.from(header, "base64").toString())
    changed.extensions = { "payment-identifier": { info: { required: false, id: "another-one-of-the-buyer" } } }
    const other = await resend(set, "/kept", Buffer.from(JSON.stringify(changed)).toString("base64"))
    assert.equal(other.status, 409)
  })
}

export const resendCases = async (
  names: ReadonlyArray<SetName>,
  world: World,
  part: (title: string, work: (part: Part) => Promise<void>) => Promise<void>,
  say: (line: string) => void
): Promise<void> => {
  for (const name of names) await installSet(name, say)
  const play = async (title: string, at: World, cases: typeof lostCases) => {
    for (const name of names) {
      await part(`${title}, set ${name.toUpperCase()}`, async (part) => {
        const payTo = (await at.account(0)).publicKey()
        const set = await startSet(name, at, payTo, network)
        await cases(set, at, part, payTo).finally(set.stop)
      })
    }
  }
  await play("sent again after a lost answer", world, lostCases)
  const slow = await startWorld({ set: slowLedger })
  await play("sent again after pending", slow, pendingCases).finally(slow.stop)
}
