// `upto` over HTTP on the local ledger, every balance checked to the atom by the ledger's own entries: settlements,
// refusals, races, and attempts of a payer, a stranger or a token between verify and settle.
import assert from "node:assert/strict"
import { Address, Keypair, nativeToScVal, Operation, rpc, TransactionBuilder, Networks } from "@stellar/stellar-sdk"
import { settlementWasm } from "../../plugins/x402-upto/contract.ts"
import { testnetUsdc } from "../../runtime/redteam/buyer.ts"
import { deployContract, execute } from "../support/deployContract.ts"
import { awaitTransaction } from "../../runtime/redteam/rpcCall.ts"
import type { UptoOptions, UptoPayment } from "../support/uptoBuyer.ts"
import { assertRefusedSettle, assertRefusedVerify, post } from "../../runtime/redteam/ask.ts"
import type { Part } from "./report.ts"
import { lyingToken, max, Mode, startToken, type Upto, uptoOf } from "./uptoWorld.ts"
import type { World } from "./world.ts"

const usdc = 10_000_000n
const word = (reason: string) => `invalid_upto_ledger_${reason}`

interface Cases {
  readonly world: World
  readonly part: Part
  readonly upto: Upto
}

interface Parties {
  readonly payer: Keypair
  readonly payTo: string
}

const partiesOf = async ({ world }: Cases): Promise<Parties> => ({
  payer: await world.account(1),
  payTo: (await world.account(0)).publicKey()
})

/** Asserts that payer and recipient have exactly their previous balances plus the amount moved between them. */
const assertMoved = async ({ world }: Cases, { payTo, payer }: Parties, moved: bigint): Promise<void> => {
  assert.equal(await world.balance(payTo), moved, "the recipient's balance")
  assert.equal(await world.balance(payer.publicKey()), usdc - moved, "the payer's balance")
}

const settled = async (cases: Cases, parties: Parties): Promise<void> => {
  const { part, upto, world } = cases
  for (const [what, actual] of [
    ["the maximum", max],
    ["a part", 2_501n],
    ["one atom", 1n],
    ["nothing", 0n]
  ] as const) {
    await part.check(`settles ${what}, verified by the maximum [S76][S84]`, async () => {
      const fresh = await partiesOf(cases)
      const payment = await upto.pay(fresh)
      assert.deepEqual((await upto.verify(payment)).json, { isValid: true, payer: fresh.payer.publicKey() })
      const { json, text } = await upto.settle(payment, actual)
      assert.equal(json?.success, true, text)
      assert.equal(json.amount, String(actual))
      assert.equal((await awaitTransaction(world.rpc, json.transaction)).status, "SUCCESS")
      await assertMoved(cases, fresh, actual)
    })
  }
  await part.check("a buyer's identifier never opens a delivered success again [S268]", async () => {
    const fresh = await partiesOf(cases)
    const body: any = (await upto.pay(fresh)).settleBody(2_501n)
    body.paymentPayload.extensions = { "payment-identifier": { info: { required: false, id: "upto-of-the-buyer" } } }
    const settle = () => post(`${world.facilitator}/settle`, body)
    const answers = [await settle(), ...(await Promise.all([settle(), settle(), settle()]))]
    assert.deepEqual(
      answers.map(({ json }) => json.success),
      [true, false, false, false]
    )
    for (const again of answers.slice(1)) assertRefusedSettle(again, ["settle_ledger_already_settled"])
    await assertMoved(cases, fresh, 2_501n)
  })
  await part.check("answers in the spelling of the seller's network", async () => {
    const payment = await upto.pay({ ...parties, network: "stellar:testnet" })
    const refused = await upto.settle(payment, max + 1n)
    assertRefusedSettle(refused, ["invalid_upto_stellar_settlement_exceeds_amount"])
    assert.equal(refused.json.network, "stellar:testnet")
  })
}

interface Refused {
  readonly what: string
  readonly options?: Partial<UptoOptions>
  readonly actual?: string
  readonly reason: string
  /** Set if verify, which checks the maximum, must accept it. */
  readonly isValid?: true
}

const refused = async (cases: Cases, otherContract: string): Promise<void> => {
  const { part, upto } = cases
  const stranger = Keypair.random().publicKey()
  const list: ReadonlyArray<Refused> = [
    { what: "one atom over the maximum", actual: String(max + 1n), reason: "settlement_exceeds_amount", isValid: true },
    { what: "a negative amount", actual: "-1", reason: "settlement_negative_amount", isValid: true },
    { what: "a fraction", actual: "0.5", reason: "settlement_invalid_amount", isValid: true },
    { what: "an authorization that has ended", options: { tamper: { deadline: 1_000 } }, reason: "settlement_expired" },
    {
      what: "an authorization that has not begun",
      options: { tamper: { validAfter: 900_000 } },
      reason: "settlement_not_yet_valid"
    },
    {
      what: "another facilitator",
      options: { tamper: { facilitator: stranger } },
      reason: "payload_wrong_facilitator"
    },
    { what: "another recipient", options: { tamper: { payTo: stranger } }, reason: "payload_wrong_recipient" },
    {
      what: "another token",
      options: { tamper: { token: "CDLZFC3SYJYDZT7K67VZ75HPJVIEUVNIXF47ZG2FB2RMQQVU2HHGCYSC" } },
      reason: "payload_wrong_asset"
    },
    {
      what: "another contract with the same code",
      options: { tamper: { contract: otherContract } },
      reason: "payload_wrong_contract"
    }
  ]
  for (const { actual, isValid, options, reason, what } of list) {
    await part.check(`refuses ${what}, and nothing moves [S219][S273]`, async () => {
      const parties = await partiesOf(cases)
      const payment = await upto.pay({ ...parties, ...options })
      if (isValid === true) assert.equal((await upto.verify(payment)).json.isValid, true)
      else assertRefusedVerify(await upto.verify(payment), [word(reason)])
      assertRefusedSettle(await upto.settle(payment, actual ?? 5n), [word(reason)])
      await assertMoved(cases, parties, 0n)
    })
  }
}

const onceOnly = async (cases: Cases): Promise<void> => {
  const { part, upto } = cases
  await part.check("settles an authorization once, even when asked again [S81]", async () => {
    const parties = await partiesOf(cases)
    const payment = await upto.pay(parties)
    const first = await upto.settle(payment, 300n)
    assert.equal(first.json?.success, true, first.text)
    const again = await upto.settle(payment, 300n)
    assertRefusedSettle(again, ["settle_ledger_already_settled"])
    assert.equal(again.json.transaction, first.json.transaction)
    for (const amount of [max, 0n]) assertRefusedSettle(await upto.settle(payment, amount))
    assertRefusedVerify(await upto.verify(payment))
    await assertMoved(cases, parties, 300n)
  })

  await part.check("settles once when twenty identical requests race", async () => {
    const parties = await partiesOf(cases)
    const payment = await upto.pay(parties)
    const answers = await Promise.all(Array.from({ length: 20 }, () => upto.settle(payment, 700n)))
    assert.equal(answers.filter(({ json }) => json?.success === true).length, 1)
    await assertMoved(cases, parties, 700n)
  })

  await part.check("settles one amount when twenty amounts race", async () => {
    const parties = await partiesOf(cases)
    const payment = await upto.pay(parties)
    const answers = await Promise.all(
      Array.from({ length: 20 }, async (_, index) => ({ index, answer: await upto.settle(payment, BigInt(index + 1)) }))
    )
    const succeeded = answers.filter(({ answer }) => answer.json?.success === true)
    assert.equal(succeeded.length, 1)
    await assertMoved(cases, parties, BigInt(succeeded[0]!.index + 1))
  })

  await part.check("settles twenty concurrent payments of one payer, each by its amount", async () => {
    const parties = await partiesOf(cases)
    const payments = await Promise.all(Array.from({ length: 20 }, () => upto.pay(parties)))
    const settleUntilKnown = async (payment: UptoPayment, amount: bigint) => {
      for (let attempt = 0; ; attempt++) {
        const { json, text } = await upto.settle(payment, amount)
        if (json?.success === true) return
        assert.ok(attempt < 30 && /temporarily_unavailable|status_unknown/.test(json?.errorReason), text)
        await new Promise((resolve) => setTimeout(resolve, 500))
      }
    }
    await Promise.all(payments.map((payment, index) => settleUntilKnown(payment, BigInt(index))))
    await assertMoved(cases, parties, 190n)
  })
}

const between = async (cases: Cases): Promise<void> => {
  const { part, upto, world } = cases
  const server = new rpc.Server(world.ledger, { allowHttp: true })
  await part.check("pays nothing when the payer has moved the balance away since verify", async () => {
    const parties = await partiesOf(cases)
    const payment = await upto.pay(parties)
    assert.equal((await upto.verify(payment)).json.isValid, true)
    const elsewhere = (await world.account(0)).publicKey()
    const transfer = Operation.invokeContractFunction({
      contract: testnetUsdc,
      function: "transfer",
      args: [
        new Address(parties.payer.publicKey()).toScVal(),
        new Address(elsewhere).toScVal(),
        nativeToScVal(usdc - 100n, { type: "i128" })
      ]
    })
    await execute(server, parties.payer, transfer)
    assertRefusedSettle(await upto.settle(payment, 101n), [word("simulation_failed")])
    assert.equal(await world.balance(parties.payTo), 0n)
    // The rest still pays for a cheaper call.
    assert.equal((await upto.settle(payment, 100n)).json?.success, true)
    assert.equal(await world.balance(parties.payTo), 100n)
    assert.equal(await world.balance(parties.payer.publicKey()), 0n)
    assert.equal(await world.balance(elsewhere), usdc - 100n)
  })

  await part.check("pays nothing when the authorization ends between verify and settle", async () => {
    const parties = await partiesOf(cases)
    const { sequence } = await server.getLatestLedger()
    const payment = await upto.pay({ ...parties, tamper: { deadline: sequence + 4 } })
    assert.equal((await upto.verify(payment)).json.isValid, true)
    while ((await server.getLatestLedger()).sequence < sequence + 4) await new Promise((done) => setTimeout(done, 200))
    assertRefusedSettle(await upto.settle(payment, 5n), [word("settlement_expired")])
    await assertMoved(cases, parties, 0n)
  })

  await part.check("is worth nothing to a stranger that has the signed payment", async () => {
    const parties = await partiesOf(cases)
    const payment = await upto.pay(parties)
    const envelope = TransactionBuilder.fromXDR(payment.paymentPayload.payload.transaction, Networks.TESTNET)
    const operation = "operations" in envelope ? envelope.operations[0] : undefined
    if (operation?.type !== "invokeHostFunction") throw new Error("the payment is no contract call")
    const thief = await world.account(0)
    const stolen = Operation.invokeHostFunction({ func: operation.func, auth: operation.auth ?? [] })
    await assert.rejects(execute(server, thief, stolen), /Auth, InvalidAction/)
    assert.equal((await upto.settle(payment, 9n)).json?.success, true)
    await assertMoved(cases, parties, 9n)
  })
}

const lying = async (cases: Cases): Promise<void> => {
  const { part, upto, world } = cases
  const token = await startToken(world.ledger)
  const holdings = async ({ payTo, payer }: Parties) => [
    await token.balance(payer.publicKey()),
    await token.balance(payTo),
    await token.balance(upto.contract)
  ]
  const payment = async () => {
    const parties = await partiesOf(cases)
    await token.mint(parties.payer.publicKey(), 50_000n)
    return { parties, payment: await upto.pay({ ...parties, asset: lyingToken }) }
  }
  await part.check("settles an honest listed token", async () => {
    await token.set(Mode.honest)
    const { parties, payment: honest } = await payment()
    const { json, text } = await upto.settle(honest, 2_000n)
    assert.equal(json?.success, true, text)
    assert.deepEqual(await holdings(parties), [48_000n, 2_000n, 0n])
  })
  for (const [what, mode] of Object.entries(Mode).filter(([, mode]) => mode !== Mode.honest)) {
    await part.check(`refuses a token that announces the whole and moves ${what}`, async () => {
      await token.set(mode)
      const { parties, payment: lie } = await payment()
      assertRefusedVerify(await upto.verify(lie), [word("simulation_failed")])
      assertRefusedSettle(await upto.settle(lie, 2_000n), [word("simulation_failed")])
      assert.deepEqual(await holdings(parties), [50_000n, 0n, 0n])
    })
  }
  await part.check("pays nothing when the token begins to lie between verify and settle", async () => {
    await token.set(Mode.honest)
    const { parties, payment: lie } = await payment()
    assert.equal((await upto.verify(lie)).json.isValid, true)
    await token.set(Mode.half)
    assertRefusedSettle(await upto.settle(lie, 2_000n), [word("simulation_failed")])
    assert.deepEqual(await holdings(parties), [50_000n, 0n, 0n])
  })
}

export const uptoCases = async (world: World, part: Part): Promise<void> => {
  const cases = { world, part, upto: await uptoOf(world) }
  const otherContract = await deployContract(
    world.ledger,
    Keypair.random(),
    settlementWasm(),
    new Uint8Array(32).fill(1)
  )
  await settled(cases, await partiesOf(cases))
  await refused(cases, otherContract)
  await onceOnly(cases)
  await between(cases)
  await lying(cases)
}
