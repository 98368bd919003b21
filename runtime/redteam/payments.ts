// Crafted payments against any facilitator on a ledger with a friendbot: the facilitator's own accounts as payer,
// recipient, source or party of an authorization; missing, foreign, nested or expired authorizations; calls that differ
// from the transfer. `/verify` and `/settle` refuse each, no money moves, and the facilitator's accounts lose none
// of the asset. If the specification has a reason for the refusal, it must be used. A row marked `harmless` may also
// settle, at most once and at the price.
import assert from "node:assert/strict"
import { Keypair } from "@stellar/stellar-sdk"
import { assertRefusedSettle, assertRefusedVerify, inDialect } from "./ask.ts"
import { usdcBalance } from "./balances.ts"
import { makePayment } from "./buyer.ts"
import type { Case } from "./cases.ts"
import { type Cast, type Crafted, price } from "./crafted.ts"
import { forgedAuthorizations } from "./forgedAuthorizations.ts"
import { forgedCalls } from "./forgedCalls.ts"
import { askFriendbot } from "./rpcCall.ts"
import type { World } from "./target.ts"

const castOf = ({ money, signers }: World): Cast => {
  const [sponsor, channel] = signers
  if (sponsor === undefined) throw new Error("the facilitator names no account that it signs with")
  const { buyer, seller, thief } = money!
  return { buyer, thief, payTo: seller.publicKey(), sponsor, channel: channel ?? sponsor }
}

const playCrafted = async (
  world: World,
  { isHarmless, options, payTo, reasons, tamper }: Crafted
): Promise<string | void> => {
  const cast = castOf(world)
  const { held, rpc } = world.money!
  const [network] = world.networks
  const owned = async () => [...(await held()), await usdcBalance(rpc, cast.sponsor)]
  const before = await owned()
  const { body } = await makePayment({
    rpc,
    payer: cast.buyer,
    payTo: payTo?.(cast) ?? cast.payTo,
    amount: price,
    network: network!,
    ...options,
    tamper: tamper(cast)
  })
  const verify = await world.ask("/verify", body)
  const settle = await world.ask("/settle", body)
  if (isHarmless === true && settle.json?.success === true) {
    const [buyer, thief, seller, sponsor] = before
    return assert.deepEqual(await owned(), [buyer! - price, thief, seller! + price, sponsor])
  }
  assert.deepEqual(await owned(), before, "money moved")
  // A row that may settle may also pass verify and be refused by settle.
  if (isHarmless !== true) assertRefusedVerify(verify)
  assertRefusedSettle(settle)
  assert.equal(settle.json.transaction, "", "a transaction was submitted")
  const expected = reasons?.map((reason) => inDialect(reason, network!))
  const other = [verify.json.invalidReason, settle.json.errorReason].find((reason) => !expected?.includes(reason))
  return expected === undefined || other === undefined ? undefined : `another reason than the scheme's: ${other}`
}

export const craftedCases: ReadonlyArray<Case> = [
  ...[...forgedAuthorizations, ...forgedCalls].map((row): Case => ({
    attack: row.attack,
    on: "facilitator",
    name: row.name,
    accepts:
      row.isHarmless === true
        ? "a refusal, or one payment at the price"
        : `a refusal by /verify and /settle${row.reasons === undefined ? "" : `: ${row.reasons.join(" or ")}`}`,
    still: "USDC of buyer, stranger, seller and sponsor, beyond one payment that settles",
    pays: true,
    play: (world) => playCrafted(world, row)
  })),
  {
    attack: 29,
    on: "facilitator",
    name: "a recipient without a trustline",
    accepts: "a refusal by /verify and /settle",
    still: "USDC of buyer, stranger, seller and sponsor",
    pays: true,
    play: async (world) => {
      const bare = Keypair.random()
      await askFriendbot(world.money!.ledger, bare.publicKey())
      return playCrafted(world, { attack: 29, name: "", payTo: () => bare.publicKey(), tamper: () => ({}) })
    }
  }
]
