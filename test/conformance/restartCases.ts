// Start, crash and restart from a user's view: the times from start to ready. A facilitator that is killed without a
// warning and restarted on the same state still reports an earlier payment correctly, and settles the next one.
import assert from "node:assert/strict"
import { makePayment } from "../../runtime/redteam/buyer.ts"
import { awaitTransaction } from "../../runtime/redteam/rpcCall.ts"
import { assertRefusedSettle, post } from "../../runtime/redteam/ask.ts"
import type { Part } from "./report.ts"
import type { World } from "./world.ts"

const price = 10_000n
/** Figures are printed; these limits only separate a hanging start from a busy machine. */
const firstStartMs = 90_000
const laterStartMs = 45_000

export const restartCases = async (world: World, part: Part): Promise<void> => {
  const payTo = (await world.account(0)).publicKey()
  const payment = async () =>
    (await makePayment({ rpc: world.rpc, payer: await world.account(1), payTo, amount: price })).body
  const settle = (body: unknown) => post(`${world.facilitator}/settle`, body)

  part.figure("first start ms", String(world.readyAfterMs))
  await part.check(`the first start was ready within ${firstStartMs} ms`, () => {
    assert.ok(world.readyAfterMs! <= firstStartMs, `${world.readyAfterMs} ms`)
  })
  const before = await payment()
  const paid = await settle(before)
  await part.check("a payment settles", () => assert.equal(paid.json?.success, true, paid.text))
  await part.check(`killed without warning and started again, it is ready within ${laterStartMs} ms`, async () => {
    const readyAfterMs = await world.crash!()
    part.figure("later start ms", String(readyAfterMs))
    assert.ok(readyAfterMs <= laterStartMs, `${readyAfterMs} ms`)
  })
  await part.check("after a restart the earlier payment is known and not paid again", async () => {
    // The kill came before or after the delivery was confirmed; in the first case the success is given again, once.
    let again = await settle(before)
    if (again.json?.success === true) {
      assert.equal(again.json.transaction, paid.json.transaction)
      again = await settle(before)
    }
    assertRefusedSettle(again, ["settle_ledger_already_settled"])
    assert.equal(again.json.transaction, paid.json.transaction)
    assert.equal((await awaitTransaction(world.rpc, paid.json.transaction)).status, "SUCCESS")
    assert.equal(await world.balance(payTo), price)
  })
  await part.check("the next payment settles", async () => {
    const next = await settle(await payment())
    assert.equal(next.json?.success, true, next.text)
    assert.equal(await world.balance(payTo), price * 2n)
  })
  await part.check("killed during a settle, the payment ends once and a retry agrees", async () => {
    const body = await payment()
    const answer = settle(body).catch(() => undefined)
    await new Promise((resolve) => setTimeout(resolve, 150))
    await world.crash!()
    await answer
    const until = performance.now() + 30_000
    let last = await settle(body)
    while (
      last.json?.success !== true &&
      !/already_settled/.test(last.json?.errorReason) &&
      performance.now() < until
    ) {
      await new Promise((resolve) => setTimeout(resolve, 500))
      last = await settle(body)
    }
    assert.match(last.json.transaction, /^[0-9a-f]{64}$/, last.text)
    assert.equal((await awaitTransaction(world.rpc, last.json.transaction)).status, "SUCCESS")
    assert.equal(await world.balance(payTo), price * 3n)
  })
}
