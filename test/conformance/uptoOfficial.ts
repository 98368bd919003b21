// `upto` through the official packages at 2.27.0: a seller built on their middleware sets the used amount with their
// own settlement override, and a buyer built on their client pays it, both with the schemes of the example.
import assert from "node:assert/strict"
import { join } from "node:path"
import { testnetUsdc } from "../../runtime/redteam/buyer.ts"
import { installSet } from "./officialSet.ts"
import { startProgram } from "./programs.ts"
import type { Part } from "./report.ts"
import { max } from "./uptoWorld.ts"
import { root, type World } from "./world.ts"

export const uptoOfficial = async (world: World, part: Part, say: (line: string) => void): Promise<void> => {
  await installSet("c", say)
  const payTo = (await world.account(0)).publicKey()
  const settings = {
    facilitator: world.facilitator,
    rpc: world.ledger,
    payTo,
    network: "stellar:testnet",
    asset: testnetUsdc,
    max: String(max)
  }
  const folder = join(root, "test", "official", "c")
  const program = startProgram(process.execPath, [join(folder, "upto.mjs"), JSON.stringify(settings)], { cwd: folder })
  let id = 0
  const buy = async (used: string | undefined) => {
    const payer = await world.account(1)
    const mine = ++id
    program.send({ id: mine, secret: payer.secret(), ...(used === undefined ? {} : { used }) })
    const answer = await program.next((line) => line.id === mine)
    assert.equal(answer.error, undefined, `the official client failed: ${answer.error}`)
    return { payer: payer.publicKey(), ...answer }
  }
  try {
    await program.next((line) => line.url !== undefined)
    let paid = 0n
    for (const [what, used, amount] of [
      ["a part", "2500", 2_500n],
      ["nothing", "0", 0n],
      ["all, without an override", undefined, max]
    ] as const) {
      await part.check(
        `an official seller and an official buyer settle ${what} by the settlement override`,
        async () => {
          const { body, payer, receipt, status } = await buy(used)
          assert.equal(status, 200, body)
          assert.equal(receipt?.success, true, JSON.stringify(receipt))
          assert.equal(receipt.amount, String(amount))
          paid += amount
          assert.equal(await world.balance(payTo), paid)
          assert.equal(await world.balance(payer), 10_000_000n - amount)
        }
      )
    }
    await part.check(
      "an official seller that asks for more than the maximum is paid nothing, with the reason",
      async () => {
        const { payer, receipt, status } = await buy(String(max + 1n))
        assert.equal(status, 402)
        assert.equal(receipt?.success, false)
        assert.equal(receipt.errorReason, "invalid_upto_stellar_settlement_exceeds_amount")
        assert.equal(await world.balance(payer), 10_000_000n)
        assert.equal(await world.balance(payTo), paid)
      }
    )
  } finally {
    await program.stop()
  }
}
