// An agent pays from a spending account. Then a thief has the tool server's key, and signs at the facilitator and at
// the ledger itself: the account's contract decides what moves.
import { expect, it, layer } from "@effect/vitest"
import { Asset, Contract, Keypair, nativeToScVal, Networks, rpc } from "@stellar/stellar-sdk"
import { Effect } from "effect"
import process from "node:process"
import { signatureValue } from "../../../plugins/mcp-tools-pay/payer/authorization.ts"
import { root } from "../../../runtime/bootstrap.mjs"
import { testnetUsdc } from "../../../runtime/redteam/buyer.ts"
import { startProgram } from "../../conformance/programs.ts"
import { execute } from "../../support/deployContract.ts"
import { eventually } from "../../support/eventually.ts"
import { freePort } from "../../support/freePort.ts"
import { setting } from "../../support/rig/settings.ts"
import { runJson } from "../../support/runCommand.ts"
import { contractUsdc } from "../../support/smartWallet.ts"
import { connectHttp } from "../mcp-tools/support.ts"
import { agentKey, pay, payingSet, PayWorld, sealed } from "./payWorld.ts"

const [cap, price] = [7_000n, 2_000n]
let fresh = 0
const args = () => ({ a: ++fresh, b: 7_000 })

/** Runs `tollkeeper agent account`. Returns its JSON, or its error text. */
const commandAt = (ledgerUrl: string, owner: Keypair, ...words: ReadonlyArray<string>) =>
  runJson(["agent", "account", ...words, ...setting(...payingSet({ ledgerUrl }))], {
    AGENT_OWNER_SECRET: owner.secret()
  })
const command = (owner: Keypair, ...words: ReadonlyArray<string>) =>
  Effect.flatMap(PayWorld, ({ facilitator }) => commandAt(facilitator.ledgerUrl, owner, ...words))

/** An account of the owner for a new key, with a tool server that pays from it. */
const opened = Effect.gen(function* () {
  const { facilitator, seller, toolsUrl } = yield* PayWorld
  const owner = yield* facilitator.account(100_000n)
  const agent = Keypair.random()
  const policy = ["--agent", agent.publicKey(), "--asset", testnetUsdc, "--to", seller.payTo]
  const created = yield* command(owner, "create", ...policy, "--cap", String(cap), "--fund", "50000")
  const account: string = created.account ?? expect.fail(created)
  const { file, key } = sealed(agent.secret())
  const set = [`signer.keystore_file=${file}`, `signer.account=${account}`]
  const url = yield* toolsUrl(set, undefined, { TOOLS_KEYSTORE_KEY: key })
  const client = yield* connectHttp(url, agentKey.split(":")[1])
  const balance = Effect.promise(() => contractUsdc(facilitator.ledgerUrl, account))
  const sign = (payload: Uint8Array) => signatureValue(agent.rawPublicKey(), agent.sign(payload))
  const thief = { contract: account, sign }
  return { account, agent, balance, client, created, owner, policy, thief }
})

layer(PayWorld.layer, { excludeTestServices: true, timeout: 240_000 })("a spending account", (it) => {
  it.effect(
    "pays within its cap, and a stolen key moves nothing above it",
    () =>
      Effect.gen(function* () {
        const { facilitator, ref, seller } = yield* PayWorld
        const { account, agent, balance, client, created, owner, thief } = yield* opened
        expect(created).toMatchObject({
          owner: owner.publicKey(),
          policy: { agent: agent.publicKey(), cap: String(cap), recipients: [seller.payTo] },
          balance: "50000",
          spentToday: "0"
        })
        const received = yield* facilitator.balance(seller.payTo)
        const { body } = yield* pay(client, ref, args())
        expect(body["receipt"], JSON.stringify(body)).toMatchObject({ status: "settled", settledAmount: String(price) })
        expect(yield* balance).toBe(50_000n - price)

        const settled = (amount: bigint, payTo = seller.payTo) =>
          Effect.gen(function* () {
            const payment = yield* facilitator.payment({ payer: thief, payTo, amount })
            return (yield* facilitator.settle(payment.body)).json
          })
        const refused = {
          success: false,
          errorReason: "invalid_ledger_enforcing_simulation_failed"
        }
        const elsewhere = (yield* facilitator.account(0n)).publicKey()
        expect(yield* settled(1n, elsewhere)).toMatchObject(refused)
        expect(yield* settled(cap - price + 1n)).toMatchObject(refused)
        // Two payments that fit one by one and not together, both signed and verified before either settles.
        const both = yield* Effect.forEach([3_000n, 3_000n], (amount) =>
          facilitator.payment({ payer: thief, payTo: seller.payTo, amount })
        )
        for (const { body } of both) expect((yield* facilitator.verify(body)).json).toMatchObject({ isValid: true })
        const answers = yield* Effect.forEach(both, ({ body }) => facilitator.settle(body), { concurrency: 2 })
        expect(answers.filter(({ json }) => json.success === true)).toHaveLength(1)
        expect(yield* balance).toBe(50_000n - price - 3_000n)
        expect((yield* facilitator.balance(seller.payTo)) - received).toBe(price + 3_000n)
        expect(yield* command(owner, "show", account)).toMatchObject({ spentToday: "5000", balance: "45000" })

        // The next day of the ledger has its own cap.
        yield* Effect.promise(() => fetch(`${facilitator.ledgerUrl}/advance?seconds=86400`, { method: "POST" }))
        // The facilitator answers busy until its clock has followed.
        const next = yield* eventually(settled(cap), ({ errorReason }) => errorReason === undefined)
        expect(next).toMatchObject({ success: true, payer: account })
        expect(yield* settled(1n)).toMatchObject(refused)
        expect(yield* command(owner, "show", account)).toMatchObject({ spentToday: String(cap) })
      }).pipe(Effect.scoped),
    240_000
  )

  it.effect(
    "gives its thief nothing at the ledger itself, and everything back to its owner",
    () =>
      Effect.gen(function* () {
        const { facilitator, ref, seller } = yield* PayWorld
        const { account, balance, client, owner, policy, thief } = yield* opened
        const server = new rpc.Server(facilitator.ledgerUrl, { allowHttp: true })
        const robber = yield* facilitator.account(0n)
        yield* Effect.promise(() => fetch(`${facilitator.ledgerUrl}/friendbot?addr=${account}`))
        const native = Asset.native().contractId(Networks.TESTNET)
        const coins = yield* facilitator.payment({ payer: thief, payTo: seller.payTo, amount: 10n, asset: native })
        expect((yield* facilitator.settle(coins.body)).json).toMatchObject({ success: false })
        const admin = new Contract(account)
        const units = nativeToScVal(1_000n, { type: "i128" })
        const to = nativeToScVal(robber.publicKey(), { type: "address" })
        const token = nativeToScVal(testnetUsdc, { type: "address" })
        for (const operation of [admin.call("revoke"), admin.call("withdraw", token, to, units)]) {
          const outcome = yield* Effect.exit(Effect.tryPromise(() => execute(server, robber, operation)))
          expect(outcome._tag).toBe("Failure")
        }
        expect(yield* balance).toBe(50_000n)

        const revoked = yield* command(owner, "revoke", account)
        expect(revoked).toMatchObject({ account, owner: owner.publicKey() })
        expect(revoked.policy).toBeUndefined()
        const { body } = yield* pay(client, ref, args())
        expect([body["code"], body["receipt"]]).toEqual(["PAYMENT_REJECTED", undefined])
        expect(body["message"]).toContain("tollkeeper agent account show")
        const payment = yield* facilitator.payment({ payer: thief, payTo: seller.payTo, amount: 1n })
        expect((yield* facilitator.settle(payment.body)).json).toMatchObject({ success: false })
        expect(yield* command(robber, "withdraw", account, "50000", "--asset", testnetUsdc)).toContain(
          `the owner of ${account} is ${owner.publicKey()}`
        )
        yield* command(owner, "withdraw", account, "50000", "--asset", testnetUsdc)
        expect([yield* balance, yield* facilitator.balance(owner.publicKey())]).toEqual([0n, 100_000n])

        // A new key of the same account, until its expiry.
        const next = Keypair.random()
        yield* command(
          owner,
          "allow",
          account,
          "--agent",
          next.publicKey(),
          ...policy.slice(2),
          "--cap",
          "9000",
          "--days",
          "1"
        )
        const funded = yield* command(owner, "fund", account, "20000")
        expect(funded).toMatchObject({ balance: "20000", policy: { cap: "9000", agent: next.publicKey() } })
        const heir = {
          ...thief,
          sign: (payload: Uint8Array) => signatureValue(next.rawPublicKey(), next.sign(payload))
        }
        const paid = (payer: typeof thief) =>
          Effect.flatMap(facilitator.payment({ payer, payTo: seller.payTo, amount: 100n }), ({ body }) =>
            Effect.map(facilitator.settle(body), ({ json }) => json.success)
          )
        expect([yield* paid(thief), yield* paid(heir)]).toEqual([false, true])
        yield* Effect.promise(() => fetch(`${facilitator.ledgerUrl}/advance?seconds=90000`, { method: "POST" }))
        expect(yield* paid(heir)).toBe(false)
        const poor = yield* command(owner, "create", ...policy, "--cap", "1", "--fund", "9000000")
        const made = /(C[A-Z2-7]{55}) is created, but not funded/.exec(poor)?.[1] ?? expect.fail(poor)
        expect(yield* command(owner, "fund", made, "5")).toMatchObject({ account: made, balance: "5" })
        expect(yield* command(owner, "create", ...policy.toSpliced(1, 1, owner.publicKey()), "--cap", "1")).toContain(
          "must not be the owner's"
        )
      }).pipe(Effect.scoped),
    240_000
  )
})

it.live(
  "an archived spending account keeps its policy, and funding restores it",
  () =>
    Effect.gen(function* () {
      const port = yield* Effect.promise(freePort)
      const ledger = `http://127.0.0.1:${port}`
      const words = ["runtime/cli.ts", "ledger", "--port", String(port), "--min-ttl", "100"]
      yield* Effect.acquireRelease(
        Effect.sync(() => startProgram(process.execPath, words, { cwd: root, env: {} })),
        (program) => Effect.promise(() => program.stop())
      )
      const owner = Keypair.random()
      const gives = () =>
        fetch(`${ledger}/friendbot?addr=${owner.publicKey()}&usdc=1000`).then(
          ({ ok }) => ok,
          () => false
        )
      yield* eventually(Effect.promise(gives))
      const policy = ["--agent", Keypair.random().publicKey(), "--asset", testnetUsdc, "--cap", "7", "--days", "1"]
      const { account } = yield* commandAt(ledger, owner, "create", ...policy, "--fund", "300")
      yield* Effect.promise(() => fetch(`${ledger}/advance?ledgers=36000`, { method: "POST" }))
      const archived = yield* commandAt(ledger, owner, "show", account)
      expect(archived).toMatchObject({ isArchived: true, balance: "300", policy: { cap: "7" } })
      const funded = yield* commandAt(ledger, owner, "fund", account, "200")
      expect(funded).toMatchObject({ isArchived: false, balance: "500", policy: archived.policy })
    }).pipe(Effect.scoped),
  240_000
)
