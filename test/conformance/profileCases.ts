// The drafts' profiles of `upto` over HTTP, every balance checked to the atom: the settled amounts, a single settlement
// for each payment, the refusals, and a token that lies.
import assert from "node:assert/strict"
import { Keypair } from "@stellar/stellar-sdk"
import { draftProfiles } from "../support/uptoProfiles.ts"
import { assertRefusedSettle, assertRefusedVerify } from "../../runtime/redteam/ask.ts"
import type { Part } from "./report.ts"
import {
  deployDraft,
  type DraftProfile,
  lyingToken,
  max,
  Mode,
  startToken,
  type Token,
  type Upto,
  uptoOf
} from "./uptoWorld.ts"
import type { World } from "./world.ts"

const usdc = 10_000_000n

interface Profiled {
  readonly world: World
  readonly part: Part
  readonly upto: Upto
  readonly profile: DraftProfile
  readonly contract: string
  readonly token: Token
}

const partiesOf = async ({ world }: Profiled) => ({
  payer: await world.account(1),
  payTo: (await world.account(0)).publicKey()
})

const settled = async (cases: Profiled): Promise<void> => {
  const { contract, part, profile, upto, world } = cases
  for (const [what, actual] of [
    ["the maximum", max],
    ["a part", 2_501n],
    ["nothing", 0n]
  ] as const) {
    await part.check(`${profile} settles ${what} once, verified by the maximum`, async () => {
      const parties = await partiesOf(cases)
      const payment = await upto.pay({ ...parties, profile, contract })
      assert.deepEqual((await upto.verify(payment)).json, { isValid: true, payer: parties.payer.publicKey() })
      const { json, text } = await upto.settle(payment, actual)
      assert.equal(json?.success, true, text)
      assert.equal(json.amount, String(actual))
      assertRefusedSettle(await upto.settle(payment, actual), ["settle_ledger_already_settled"])
      assert.equal(await world.balance(parties.payTo), actual)
      assert.equal(await world.balance(parties.payer.publicKey()), usdc - actual)
    })
  }
}

const refused = async (cases: Profiled): Promise<void> => {
  const { contract, part, profile, upto, world } = cases
  const stranger = Keypair.random().publicKey()
  for (const [what, tamper, reason] of [
    ["another recipient", { payTo: stranger }, "payload_wrong_recipient"],
    ["a larger maximum", { max: max + 1n }, "payload_invalid_max_amount"],
    ["a call below that is none of the allowance", { subInvocations: () => [] }, "payload_wrong_subinvocations"],
    ["a last ledger that has passed", { deadline: 1_000 }, "settlement_expired"]
  ] as const) {
    await part.check(`${profile} refuses ${what}, and nothing moves`, async () => {
      const parties = await partiesOf(cases)
      const payment = await upto.pay({ ...parties, profile, contract, tamper })
      assertRefusedVerify(await upto.verify(payment), [`invalid_upto_ledger_${reason}`])
      assertRefusedSettle(await upto.settle(payment, 5n), [`invalid_upto_ledger_${reason}`])
      assert.equal(await world.balance(parties.payer.publicKey()), usdc)
    })
  }
  await part.check(`${profile} refuses one atom over the maximum`, async () => {
    const payment = await upto.pay({ ...(await partiesOf(cases)), profile, contract })
    assertRefusedSettle(await upto.settle(payment, max + 1n), ["invalid_upto_ledger_settlement_exceeds_amount"])
  })
}

const lying = async (cases: Profiled): Promise<void> => {
  const { contract, part, profile, token, upto } = cases
  for (const [what, mode] of Object.entries(Mode)) {
    const name = mode === Mode.honest ? "settles an honest token" : `refuses a token that moves ${what}`
    await part.check(`${profile} ${name}`, async () => {
      await token.set(mode)
      const parties = await partiesOf(cases)
      await token.mint(parties.payer.publicKey(), 50_000n)
      const payment = await upto.pay({ ...parties, profile, contract, asset: lyingToken })
      const answer = await upto.settle(payment, 2_000n)
      const moved = mode === Mode.honest ? 2_000n : 0n
      if (mode === Mode.honest) assert.equal(answer.json?.success, true, answer.text)
      else assertRefusedSettle(answer, ["invalid_upto_ledger_simulation_failed"])
      assert.equal(await token.balance(parties.payTo), moved)
      assert.equal(await token.balance(parties.payer.publicKey()), 50_000n - moved)
      assert.equal(await token.balance(contract), 0n)
    })
  }
}

export const profileCases = async (world: World, part: Part): Promise<void> => {
  const upto = await uptoOf(world)
  const token = await startToken(world.ledger)
  for (const profile of draftProfiles.filter((name) => upto.profiles.includes(name))) {
    const cases = { world, part, upto, profile, token, contract: await deployDraft(world.ledger, profile) }
    await settled(cases)
    await refused(cases)
    await lying(cases)
  }
}
