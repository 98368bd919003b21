// Sends every changed payment of `refusals.ts` to both routes, and then the honest payment that they were made from:
// the refusals must not have affected it.
import assert from "node:assert/strict"
import { assertRefusedSettle, assertRefusedVerify, inDialect, post } from "../../runtime/redteam/ask.ts"
import { refusals } from "./refusals.ts"
import type { Part } from "./report.ts"
import type { World } from "./world.ts"

/** `honest` makes a body for `/settle` that has not been sent before, paying `price` to `payTo`. */
export const refusalCases = async (
  part: Part,
  world: World,
  payTo: string,
  price: bigint,
  honest: () => Promise<any>
): Promise<void> => {
  const stranger = (await world.account(1)).publicKey()
  const body = await honest()
  const before = await world.balance(payTo)
  for (const { apply, change, reasons } of refusals) {
    await part.check(`refused on both routes as ${reasons[0]}: ${change}`, async () => {
      const changed = apply(body, stranger)
      const expected = reasons.map((reason) => inDialect(reason, changed.paymentRequirements.network))
      const verify = await post(`${world.facilitator}/verify`, changed)
      const settle = await post(`${world.facilitator}/settle`, changed)
      assertRefusedVerify(verify, expected)
      assertRefusedSettle(settle, expected)
      assert.deepEqual([verify.status, settle.status], [200, 200])
      assert.equal(settle.json.transaction, "")
    })
  }
  await part.check("no refused payment moved money", async () => {
    assert.equal(await world.balance(payTo), before)
    assert.equal(await world.balance(stranger), 10_000_000n)
  })
  await part.check(
    "the honest payment they were made from still verifies and settles, without a second verify [S80]",
    async () => {
      const fresh = await honest()
      const verify = await post(`${world.facilitator}/verify`, fresh)
      assert.equal(verify.json?.isValid, true, verify.text)
      const settle = await post(`${world.facilitator}/settle`, fresh)
      assert.equal(settle.json?.success, true, settle.text)
      const second = await post(`${world.facilitator}/settle`, body)
      assert.ok(
        second.json?.success === true || second.json?.errorReason?.includes("expired"),
        `the changed payments' own original: ${second.text}`
      )
      const payments = second.json?.success === true ? 2n : 1n
      assert.equal((await world.balance(payTo)) - before, price * payments)
    }
  )
}
